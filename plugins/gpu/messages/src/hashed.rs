//! What is said of the hashes of device memory, and of what of it is wanted.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Bytes of a hash on the wire: a number, its lowest byte first.
pub const HASH_BYTES: usize = 16;

/// Who may hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashers {
    /// GPUs, what lies on them.
    pub gpus: bool,
    /// The helper's processor, what lies in host memory.
    pub processor: bool,
}

/// The hashes of what is staged. They come behind the answer: of each run as many as it has blocks, one run behind the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hashed {
    /// By memory, and by block.
    pub runs: Vec<Run>,
    pub by_gpus: Spent,
    pub by_processor: Spent,
    /// Why GPUs hash nothing, or not everything that lies on them; `None`: nothing went wrong.
    pub problem: Option<String>,
}

/// Blocks side by side whose hashes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// By its number in the list of memories.
    pub memory: usize,
    /// The number of the first block: it begins at so many times the size of a block.
    pub first: u64,
    pub blocks: u64,
}

/// What was hashed, and how long that took.
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

/// How many blocks a memory has, the last of which may be shorter.
pub fn blocks(bytes: u64, block: u64) -> u64 {
    bytes.div_ceil(block.max(1))
}

/// Bytes of a list of bits, one for each block.
pub fn bits(bytes: u64, block: u64) -> u64 {
    blocks(bytes, block).div_ceil(8)
}

/// One bit for each block of a memory: whether it is wanted.
pub fn to_bits(wanted: &[Range<u64>], bytes: u64, block: u64) -> Vec<u8> {
    let mut all = vec![0; bits(bytes, block) as usize];
    for range in wanted {
        for number in range.start / block.max(1)..blocks(range.end.min(bytes), block) {
            all[(number / 8) as usize] |= 1 << (number % 8);
        }
    }
    all
}

/// The ranges of a memory's bytes that these bits want: ascending, apart, and none empty. Bits of blocks that it has not count for nothing.
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
        // Fewer bits than blocks.
        assert_eq!(from_bits(&[0x80], 200, 10), [70..80]);
        // A size that is none.
        assert_eq!(from_bits(&[0xff], 3, 0), [0..3]);
    }
}
