//! An interpreter runs the kernel's text, and its results are compared with the definition: no GPU is needed.

#[path = "kernel/machine.rs"]
mod machine;

use machine::Machine;
use proptest::prelude::*;
use stillpoint_gpu_hash::hash;
use stillpoint_gpu_hash::kernel::{ALIGNMENT, HASH_BYTES, NAME, PTX, THREADS};

fn machine() -> Machine {
    Machine::of(PTX.to_str().expect("text"))
}

/// Returns the hashes of all blocks of a memory, as the kernel computes them.
fn by_kernel(memory: &[u8], block: usize) -> Vec<u128> {
    let blocks = memory.len().div_ceil(block);
    let mut hashes = vec![0; blocks * HASH_BYTES as usize];
    machine().launch(blocks as u32, memory, block as u64, &mut hashes);
    let (found, _) = hashes.as_chunks::<16>();
    found
        .iter()
        .map(|hash| u128::from_le_bytes(*hash))
        .collect()
}

fn by_definition(memory: &[u8], block: usize) -> Vec<u128> {
    memory.chunks(block).map(hash).collect()
}

fn noise(length: usize) -> Vec<u8> {
    let byte = |place: usize| {
        (place as u64)
            .wrapping_mul(0x2545_f491_4f6c_dd1d)
            .to_le_bytes()[5]
    };
    (0..length).map(byte).collect()
}

#[test]
fn the_text_says_what_whoever_launches_it_goes_by() {
    let machine = machine();
    assert_eq!(machine.entry, NAME.to_str().expect("a name"));
    assert_eq!(machine.threads, THREADS);
    assert_eq!(machine.parameters, ["memory", "bytes", "block", "hashes"]);
}

/// Blocks of all sizes, with a short last one that ends in the middle of a row or between rows.
#[test]
fn kernel_and_definition_agree() {
    for (bytes, block) in [
        (16, 64),
        (64, 64),
        (2032, 2048),
        (2048, 2048),
        (2064, 4096),
        (3 * 4096 + 16, 4096),
        (2 * 65_536 + 10_000, 65_536),
    ] {
        let memory = noise(bytes);
        assert_eq!(
            by_kernel(&memory, block),
            by_definition(&memory, block),
            "{bytes} in blocks of {block}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_memory_it_is(units in proptest::collection::vec(any::<[u8; ALIGNMENT as usize]>(), 1..700), size in 6u32..14) {
        let memory = units.concat();
        let block = 1 << size;
        prop_assert_eq!(by_kernel(&memory, block), by_definition(&memory, block));
    }
}

/// The comparison can fail: a text with another rotation, another factor, or a lane less computes other hashes.
#[test]
fn another_text_finds_other_hashes() {
    let memory = noise(4096 + 48);
    let right = by_definition(&memory, 4096);
    let text = PTX.to_str().expect("text");
    for (is, other) in [
        ("%high, 29", "%high, 28"),
        ("d6e8feb86659fd93", "d6e8feb86659fd95"),
        ("%half, 64", "%half, 32"),
        ("%at, 2048", "%at, 4096"),
        ("xor.b64 %low, %low, %length", "xor.b64 %low, %low, %at"),
    ] {
        assert!(text.contains(is), "{is}");
        let mut hashes = vec![0; 32];
        Machine::of(&text.replace(is, other)).launch(2, &memory, 4096, &mut hashes);
        let (found, _) = hashes.as_chunks::<16>();
        let found: Vec<u128> = found
            .iter()
            .map(|hash| u128::from_le_bytes(*hash))
            .collect();
        assert_ne!(found, right, "{other}");
    }
}
