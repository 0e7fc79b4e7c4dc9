//! Block hashing: a table of the hashes of all blocks, and the changes since it was made.
//!
//! A block is a stretch of memory that begins at a multiple of the block size, wherever its region begins. So a region may grow and
//! shrink at both ends, be cut in two or joined with another, and the blocks in its middle stay the same. At a region's ends blocks
//! may be short. A hash holds for the bytes between two addresses, so a short block that has grown is another block.
//!
//! A hash keeps 80 of xxh3's 128 bits: at the smallest block size, all bits would take a quarter of the memory that they describe. xxh3 is no cryptographic
//! hash. Two different blocks that were not chosen for it have the same 80 bits once in 2^80 pairs, and each block is compared only with its own
//! predecessor. A process seeds its hashes with a secret number ([`Hash::seed`]), so a person who gives a job its data cannot prepare two blocks with one
//! hash.

mod compare;
mod stretches;
mod table;

pub use compare::{Change, CompareError, Compared, Counts, Memory, Slice};
pub use stretches::stretches;
pub use table::{BlockHashTable, TableError};

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a page, the unit of page numbers.
pub const PAGE: u64 = 4096;

/// Bytes of a hash.
pub const HASH: u64 = size_of::<Hash>() as u64;

/// The number of bytes in a block: a power of two, so that either blocks divide pages or pages divide blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockSize(u64);

/// An invalid block size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} bytes are not a block size: use a power of two from 64 to 65536")]
pub struct BlockSizeError(u64);

impl BlockSize {
    pub const SMALLEST: BlockSize = BlockSize(64);
    pub const LARGEST: BlockSize = BlockSize(64 << 10);
    /// One block for each page.
    pub const PAGE: BlockSize = BlockSize(PAGE);

    pub fn new(bytes: u64) -> Result<BlockSize, BlockSizeError> {
        let sizes = BlockSize::SMALLEST.0..=BlockSize::LARGEST.0;
        match bytes.is_power_of_two() && sizes.contains(&bytes) {
            true => Ok(BlockSize(bytes)),
            false => Err(BlockSizeError(bytes)),
        }
    }

    /// Returns all sizes, the smallest first.
    pub fn all() -> impl Iterator<Item = BlockSize> {
        let sizes = std::iter::successors(Some(BlockSize::SMALLEST), |size| {
            BlockSize::new(2 * size.0).ok()
        });
        sizes.into_iter()
    }

    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the numbers of the blocks that overlap a region.
    fn numbers(self, region: &Range<u64>) -> Range<u64> {
        match region.is_empty() {
            true => 0..0,
            false => region.start / self.0..region.end.div_ceil(self.0),
        }
    }

    /// Returns the first and last address of a block, cut to its region.
    fn extent(self, number: u64, region: &Range<u64>) -> Range<u64> {
        let start = number * self.0;
        start.max(region.start)..start.saturating_add(self.0).min(region.end)
    }

    /// Counts the blocks of a region, including short ones.
    pub fn count(self, region: &Range<u64>) -> u64 {
        let numbers = self.numbers(region);
        numbers.end - numbers.start
    }
}

/// The hash of a block's bytes: the lower bits of xxh3's 128. It is no integer, whose alignment would take up the bytes saved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hash([u8; 10]);

static SEED: AtomicU64 = AtomicU64::new(0);

impl Hash {
    /// Seeds all hashes of this process. The caller does this once, before the first hash.
    pub fn seed(seed: u64) {
        SEED.store(seed, Ordering::Relaxed);
    }

    pub fn of(bytes: &[u8]) -> Hash {
        let seed = SEED.load(Ordering::Relaxed);
        Hash::kept(xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed))
    }

    /// Shortens another hash of 128 bits to the bits that are kept.
    pub fn kept(whole: u128) -> Hash {
        let [kept @ .., _, _, _, _, _, _] = whole.to_le_bytes();
        Hash(kept)
    }
}

/// Tells whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    let (lines, rest) = bytes.as_chunks::<64>();
    lines.iter().all(|line| *line == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_are_powers_of_two_within_bounds() {
        let sizes: Vec<u64> = BlockSize::all().map(BlockSize::bytes).collect();
        assert_eq!(
            sizes,
            [
                64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536
            ]
        );
        for wrong in [0, 32, 255, 3000, 128 << 10, u64::MAX] {
            let error = BlockSize::new(wrong).expect_err("no size").to_string();
            assert!(error.starts_with(&format!("{wrong} bytes are not a block size: use")));
        }
    }

    #[test]
    fn blocks_begin_at_multiples_of_their_size_and_are_short_at_the_ends() {
        let size = BlockSize::new(256).expect("a power of two");
        let region = 100..700;
        assert_eq!(size.numbers(&region), 0..3);
        let extents = [0, 1, 2].map(|number| size.extent(number, &region));
        assert_eq!(extents, [100..256, 256..512, 512..700]);
        assert_eq!((size.count(&region), size.count(&(512..512))), (3, 0));
        // At the end of all addresses.
        let last = u64::MAX - 10..u64::MAX;
        assert_eq!(size.extent(size.numbers(&last).start, &last), last);
    }

    #[test]
    fn the_hash_is_the_lower_bits_of_xxh3() {
        // From the test vectors of the reference, with seed 0: no bytes.
        let whole = 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128;
        assert_eq!(Hash::of(b"").0, whole.to_le_bytes()[..10]);
        assert_eq!(HASH, 10);
    }

    #[test]
    fn one_byte_anywhere_is_not_zero() {
        for length in [1, 63, 64, 65, 256, 300] {
            let mut bytes = vec![0; length];
            assert!(is_zero(&bytes));
            for at in 0..length {
                bytes[at] = 1;
                assert!(!is_zero(&bytes), "{at} of {length}");
                bytes[at] = 0;
            }
        }
    }
}
