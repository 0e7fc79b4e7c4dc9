//! Compares the hashes of one device's memory to find unchanged blocks: hashes that were reported, and those of bytes that arrive. Pure.

use std::ops::Range;

use stillpoint_gpu_hash::hash;
use stillpoint_incremental::blocks::Hash;

/// Bytes of a block: a hash for each 64 KiB takes 0.015 % of the devices' memory.
pub const BLOCK: u64 = 64 << 10;

/// A memory of so many bytes, while it is compared.
pub struct Comparing {
    bytes: u64,
    /// The hashes of its blocks in the base.
    before: Vec<Hash>,
    /// Bytes that lie in images that must not be needed any more, in whole blocks.
    left: Vec<Range<u64>>,
    /// The hashes of its blocks where they lie, as far as they were reported.
    told: Vec<Option<Hash>>,
    /// The hashes of its blocks now.
    now: Vec<Option<Hash>>,
    /// Blocks that have arrived and are unchanged.
    came_unchanged: Vec<Range<u64>>,
}

/// The reason why a memory cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error(
        "{bytes} bytes of it at {at} are not what was hashed where they lay: a copy, or a GPU, is faulty"
    )]
    Changed { at: u64, bytes: u64 },
    #[error("the block at {0} has not come")]
    Missing(u64),
    #[error("{bytes} bytes came at {at}, which is no block of it")]
    NoBlock { at: u64, bytes: u64 },
}

/// The result for a memory: the hashes of its blocks, and its unchanged ranges.
pub type Compared = (Vec<Hash>, Vec<Range<u64>>);

impl Comparing {
    /// Starts a comparison. `left` are bytes that have to be written again, whatever their hashes are.
    pub fn new(bytes: u64, before: Vec<Hash>, left: &[Range<u64>]) -> Comparing {
        let blocks = bytes.div_ceil(BLOCK) as usize;
        let whole = |range: &Range<u64>| {
            let end = range.end.next_multiple_of(BLOCK).min(bytes);
            range.start / BLOCK * BLOCK..end
        };
        Comparing {
            bytes,
            before,
            left: left
                .iter()
                .map(whole)
                .filter(|range| !range.is_empty())
                .collect(),
            told: vec![None; blocks],
            now: vec![None; blocks],
            came_unchanged: Vec::new(),
        }
    }

    /// Takes the hashes of blocks that were hashed where they lie.
    pub fn told(&mut self, hashes: &[Option<u128>]) {
        for (told, hash) in self.told.iter_mut().zip(hashes) {
            *told = hash.map(Hash::kept);
        }
    }

    fn extent(&self, number: u64) -> Range<u64> {
        number * BLOCK..((number + 1) * BLOCK).min(self.bytes)
    }

    /// Returns whether a block with this hash is unchanged, and may stay where it is.
    fn stays(&self, number: u64, hash: Hash) -> bool {
        let start = number * BLOCK;
        let next = self.left.partition_point(|range| range.end <= start);
        let is_left = self
            .left
            .get(next)
            .is_some_and(|range| range.start <= start);
        self.before.get(number as usize) == Some(&hash) && !is_left
    }

    /// Returns the blocks that need not be sent; neighbours are joined.
    fn stay_by_what_is_told(&self) -> Vec<Range<u64>> {
        let told = self.told.iter().zip(0..);
        let stay = told.filter(|(told, number)| told.is_some_and(|hash| self.stays(*number, hash)));
        joined(stay.map(|(_, number)| self.extent(number)))
    }

    /// Returns the ranges that have to be sent, according to the reported hashes.
    pub fn wanted(&self) -> Vec<Range<u64>> {
        let mut wanted = Vec::new();
        let mut at = 0;
        for stays in self.stay_by_what_is_told() {
            wanted.push(at..stays.start);
            at = stays.end;
        }
        wanted.push(at..self.bytes);
        wanted.retain(|range| !range.is_empty());
        wanted
    }

    /// Returns the length of the block that begins there.
    pub fn length(&self, at: u64) -> u64 {
        BLOCK.min(self.bytes.saturating_sub(at))
    }

    /// Takes a whole block that has arrived. Returns whether it has to be written.
    ///
    /// # Errors
    /// The block differs from the one that was hashed where it lay.
    pub fn has_come(&mut self, at: u64, bytes: &[u8]) -> Result<bool, Wrong> {
        let number = at / BLOCK;
        let length = bytes.len() as u64;
        if !at.is_multiple_of(BLOCK) || length == 0 || length != self.length(at) {
            return Err(Wrong::NoBlock { at, bytes: length });
        }
        let found = Hash::kept(hash(bytes));
        if self.told[number as usize].is_some_and(|told| told != found) {
            return Err(Wrong::Changed { at, bytes: length });
        }
        self.now[number as usize] = Some(found);
        let stays = self.stays(number, found);
        if stays {
            self.came_unchanged.push(at..at + length);
        }
        Ok(!stays)
    }

    /// Ends the comparison when everything that was wanted has arrived.
    ///
    /// # Errors
    /// A block has not arrived, and its hash was not reported.
    pub fn end(mut self) -> Result<Compared, Wrong> {
        let mut unchanged = self.stay_by_what_is_told();
        for stays in &unchanged {
            for number in stays.start / BLOCK..stays.end.div_ceil(BLOCK) {
                self.now[number as usize] = self.told[number as usize];
            }
        }
        unchanged.append(&mut self.came_unchanged);
        unchanged.sort_unstable_by_key(|range| range.start);
        let hashes = self.now.iter().zip(0..);
        let hashes = hashes.map(|(hash, number)| hash.ok_or(Wrong::Missing(number * BLOCK)));
        let hashes = hashes.collect::<Result<_, _>>()?;
        Ok((hashes, joined(unchanged.into_iter())))
    }
}

/// Joins ranges that touch; they are in order.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]
mod tests;
