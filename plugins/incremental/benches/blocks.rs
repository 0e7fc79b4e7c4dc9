//! How fast memory is hashed and compared, at each block size. `cargo bench -p stillpoint-incremental`.
//!
//! All pages are dirty. In `same` no block has changed, in `changed` every block has. `beta_hash` of the model is the rate of
//! `same`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use stillpoint_incremental::blocks::{BlockHashTable, BlockSize, Hash, PAGE, Slice};

/// More than the processor's caches have.
const BYTES: u64 = 256 << 20;

fn compare(criterion: &mut Criterion) {
    // No two blocks are alike.
    let words = (0..BYTES / 8).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let region = 0..BYTES;
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "a list of one range is meant"
    )]
    let dirty = [0..BYTES / PAGE];
    for name in ["same", "changed"] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(BYTES)).sample_size(20);
        for block in BlockSize::all() {
            let mut memory = Slice {
                start: 0,
                bytes: &bytes,
            };
            let mut run = |table: &BlockHashTable| {
                let compared = table.compare(region.clone(), &dirty, &mut memory);
                compared.expect("all of it is there")
            };
            let table = match name {
                "same" => run(&BlockHashTable::new(block)).table,
                _ => {
                    let hashes = vec![Hash::default(); block.count(&region) as usize];
                    BlockHashTable::of(block, region.clone(), hashes).expect("a hash a block")
                }
            };
            group.bench_function(block.bytes().to_string(), |bencher| {
                bencher.iter(|| black_box(run(&table)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, compare);
criterion_main!(benches);
