//! The hash rate of one processor, beside xxh3: best of some times, over 128 MiB and over one block again and again. Also the rate of copying 128 MiB
//! to other memory, as handing them to another hasher would need.

use std::hint::black_box;
use std::time::Instant;

use stillpoint_gpu_hash::hash;

type Hasher = fn(&[u8]) -> u128;

fn main() {
    let hashers: [(&str, Hasher); 2] = [("lanes", hash), ("xxh3", xxhash_rust::xxh3::xxh3_128)];
    let memory: Vec<u8> = (0..128usize << 20)
        .map(|place| ((place * 31) >> 3) as u8)
        .collect();
    copies(&memory);
    for block in [4096, 65_536, 1 << 20] {
        for (name, hasher) in hashers {
            let all = best(|| {
                memory
                    .chunks(block)
                    .fold(0, |sum, bytes| sum ^ hasher(bytes))
            });
            let again = best(|| {
                let times = memory.len() / block;
                (0..times).fold(0, |sum, _| sum ^ hasher(black_box(&memory[..block])))
            });
            let rate = |seconds: f64| memory.len() as f64 / seconds / 1e9;
            println!(
                "{name}, blocks of {block}: 128 MiB {:.1} GB/s, again and again {:.1} GB/s",
                rate(all),
                rate(again)
            );
        }
    }
}

fn copies(memory: &[u8]) {
    let mut other = vec![1u8; memory.len()];
    let seconds = best(|| {
        other.copy_from_slice(black_box(memory));
        u128::from(black_box(&other)[memory.len() / 2])
    });
    println!(
        "copying 128 MiB: {:.1} GB/s",
        memory.len() as f64 / seconds / 1e9
    );
}

fn best(mut run: impl FnMut() -> u128) -> f64 {
    let time = |_| {
        let begun = Instant::now();
        black_box(run());
        begun.elapsed().as_secs_f64()
    };
    (0..12).map(time).fold(f64::INFINITY, f64::min)
}
