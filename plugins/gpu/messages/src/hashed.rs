//! Messages about hashes of device memory, and about the wanted blocks.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Bytes of a hash on the wire: a number, its lowest byte first.
pub const HASH_BYTES: usize = 16;

/// The processors that may hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashers {
    /// GPUs may hash the memory on them.
    pub gpus: bool,
    /// The helper's processor may hash host memory.
    pub processor: bool,
}

/// The hashes of staged memory. The hashes follow the answer: one for each block of each run, one run behind the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hashed {
    /// The runs, by memory and by block.
    pub runs: Vec<Run>,
    pub by_gpus: Spent,
    pub by_processor: Spent,
    /// The reason why GPUs hash nothing, or only a part of their memory, or `None` if nothing went wrong.
    pub problem: Option<String>,
}

/// Adjacent blocks with known hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The memory's number in the list of memories.
    pub memory: usize,
    /// The number of the first block: its offset divided by the block size.
    pub first: u64,
    pub blocks: u64,
}

/// The hashed bytes, and the seconds that this took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub bytes: u64,
    pub seconds: f64,
}

impl Spent {
    pub fn add(&mut self, bytes: u64, seconds: f64) {
        self.bytes += bytes;
        self.seconds += seconds;
    }
}

/// Returns the number of blocks of a memory, the last of which may be shorter.
pub fn blocks(bytes: u64, block: u64) -> u64 {
    bytes.div_ceil(block.max(1))
}

/// Returns the bytes of a list of bits, one for each block.
pub fn bits(bytes: u64, block: u64) -> u64 {
    blocks(bytes, block).div_ceil(8)
}

/// Makes one bit for each block of a memory: whether it is wanted.
pub fn to_bits(wanted: &[Range<u64>], bytes: u64, block: u64) -> Vec<u8> {
    let mut all = vec![0; bits(bytes, block) as usize];
    for range in wanted {
        for number in range.start / block.max(1)..blocks(range.end.min(bytes), block) {
            all[(number / 8) as usize] |= 1 << (number % 8);
        }
    }
    all
}

/// Returns the ranges of a memory's bytes that these bits request: ascending, apart, and none empty. Ignores bits beyond the memory's
/// blocks.
pub fn from_bits(all: &[u8], bytes: u64, block: u64) -> Vec<Range<u64>> {
    let block = block.max(1);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for number in 0..blocks(bytes, block) {
        let byte = all.get((number / 8) as usize).copied().unwrap_or(0);
        if byte >> (number % 8) & 1 == 0 {
            continue;
        }
        let start = number * block;
        let end = (start + block).min(bytes);
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_comes_out_as_it_went_in() {
        for (bytes, wanted) in [
            (0, vec![]),
            (1, vec![0..1]),
            (100, vec![0..100]),
            (100, vec![10..30, 90..100]),
            (95, vec![0..10, 20..90]),
            (800, vec![70..90, 790..800]),
        ] {
            let all = to_bits(&wanted, bytes, 10);
            assert_eq!(all.len() as u64, bits(bytes, 10));
            assert_eq!(from_bits(&all, bytes, 10), wanted, "of {bytes}");
        }
    }

    #[test]
    fn whole_blocks_are_wanted_and_none_that_are_not_there() {
        assert_eq!(from_bits(&to_bits(&[5..12], 95, 10), 95, 10), [0..20]);
        assert_eq!(from_bits(&to_bits(&[94..400], 95, 10), 95, 10), [90..95]);
        assert_eq!(from_bits(&[0xff, 0xff], 95, 10), [0..95]);
        // There are fewer bits than blocks.
        assert_eq!(from_bits(&[0x80], 200, 10), [70..80]);
        // The block size is not valid.
        assert_eq!(from_bits(&[0xff], 3, 0), [0..3]);
    }
}
