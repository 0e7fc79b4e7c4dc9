//! The hashes of an epoch.

use std::ops::Range;

use super::{BlockSize, HASH, Hash, PAGE};

/// The hashes of the blocks of any number of regions, by their addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockHashTable {
    block: BlockSize,
    /// Runs by address; they do not overlap.
    runs: Vec<Run>,
}

/// A stretch of memory; the hash of each of its blocks is known.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    region: Range<u64>,
    hashes: Vec<Hash>,
}

/// An error of a table that cannot exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TableError {
    #[error("a table of blocks of {} bytes cannot take hashes of blocks of {} bytes: start again with a whole epoch", .mine.bytes(), .theirs.bytes())]
    BlockSize { mine: BlockSize, theirs: BlockSize },
    #[error("{:#x} to {:#x} is in the table already: give each region once", .0.start, .0.end)]
    Twice(Range<u64>),
    #[error("{:#x} to {:#x} has {} blocks, but {hashes} hashes are given", .region.start, .region.end, .blocks)]
    Count {
        region: Range<u64>,
        blocks: u64,
        hashes: usize,
    },
}

impl Run {
    /// The blocks that lie within a range as a whole.
    fn within(&self, block: BlockSize, range: Range<u64>) -> Option<Run> {
        let size = block.bytes();
        let start = match range.start <= self.region.start {
            true => self.region.start,
            false => range.start.checked_next_multiple_of(size)?,
        };
        let end = match range.end >= self.region.end {
            true => self.region.end,
            false => range.end / size * size,
        };
        if start >= end {
            return None;
        }
        let region = start..end;
        let first = block.numbers(&self.region).start;
        let numbers = block.numbers(&region);
        let hashes = &self.hashes[(numbers.start - first) as usize..(numbers.end - first) as usize];
        let hashes = hashes.to_vec();
        Some(Run { region, hashes })
    }
}

impl BlockHashTable {
    /// Makes an empty table, as before the first epoch.
    pub fn new(block: BlockSize) -> BlockHashTable {
        BlockHashTable {
            block,
            runs: Vec::new(),
        }
    }

    /// Rebuilds a table that was kept elsewhere, from the hashes of all blocks of one region.
    pub fn of(
        block: BlockSize,
        region: Range<u64>,
        hashes: Vec<Hash>,
    ) -> Result<BlockHashTable, TableError> {
        let blocks = block.count(&region);
        if blocks != hashes.len() as u64 {
            let hashes = hashes.len();
            return Err(TableError::Count {
                region,
                blocks,
                hashes,
            });
        }
        let runs = match region.is_empty() {
            true => Vec::new(),
            false => vec![Run { region, hashes }],
        };
        Ok(BlockHashTable { block, runs })
    }

    pub fn block_size(&self) -> BlockSize {
        self.block
    }

    /// Returns stretches of memory with the hashes of their blocks, by address.
    pub fn runs(&self) -> impl Iterator<Item = (Range<u64>, &[Hash])> {
        let runs = self.runs.iter();
        runs.map(|run| (run.region.clone(), &run.hashes[..]))
    }

    /// Returns the number of bytes that the hashes take.
    pub fn bytes(&self) -> u64 {
        HASH * self
            .runs
            .iter()
            .map(|run| run.hashes.len() as u64)
            .sum::<u64>()
    }

    /// Adds the hashes of other regions.
    pub fn add(&mut self, other: BlockHashTable) -> Result<(), TableError> {
        if self.block != other.block {
            return Err(TableError::BlockSize {
                mine: self.block,
                theirs: other.block,
            });
        }
        // The other table usually lies behind all of this one.
        let end = self.runs.last().map_or(0, |last| last.region.end);
        if other
            .runs
            .first()
            .is_none_or(|first| end <= first.region.start)
        {
            self.runs.extend(other.runs);
            return Ok(());
        }
        for run in &other.runs {
            let region = &run.region;
            match self.runs.get(self.first_beyond(region.start)) {
                Some(mine) if mine.region.start < region.end => {
                    return Err(TableError::Twice(region.clone()));
                }
                _ => {}
            }
        }
        self.runs.extend(other.runs);
        // This sort is fast on two ascending lists, one behind the other.
        self.runs.sort_by_key(|run| run.region.start);
        Ok(())
    }

    /// Finds the first run that ends beyond an address.
    fn first_beyond(&self, address: u64) -> usize {
        self.runs.partition_point(|run| run.region.end <= address)
    }

    /// Returns the hash of the block with exactly this extent.
    pub fn get(&self, extent: &Range<u64>) -> Option<Hash> {
        let number = extent.start / self.block.bytes();
        match self.from(extent.start).find(number..number + 1, extent) {
            Found::All(hashes) => hashes.first().copied(),
            Found::Nothing | Found::Some => None,
        }
    }

    /// Returns the blocks from an address on, for a single pass.
    pub(super) fn from(&self, address: u64) -> Known<'_> {
        let runs = &self.runs[self.first_beyond(address)..];
        Known {
            block: self.block,
            runs,
        }
    }

    /// Counts the bytes of a range that lie in blocks with a known hash.
    pub fn known(&self, range: &Range<u64>) -> u64 {
        let runs = self.runs[self.first_beyond(range.start)..].iter();
        let runs = runs.take_while(|run| run.region.start < range.end);
        let common = runs.map(|run| {
            let (start, end) = (
                run.region.start.max(range.start),
                run.region.end.min(range.end),
            );
            end.saturating_sub(start)
        });
        common.sum()
    }

    /// Forgets all blocks that have a byte in pages which were written without being hashed. Their hashes are older than the
    /// bytes in the image. A block that changed back would seem unchanged.
    pub fn forget_pages(&mut self, pages: &[Range<u64>]) {
        let gone = pages
            .iter()
            .map(|pages| pages.start.saturating_mul(PAGE)..pages.end.saturating_mul(PAGE));
        let mut gone: Vec<_> = gone.filter(|range| !range.is_empty()).collect();
        gone.sort_by_key(|range| range.start);
        gone.dedup_by(|next, range| {
            let joined = next.start <= range.end;
            if joined {
                range.end = range.end.max(next.end);
            }
            joined
        });
        self.forget(&gone);
    }

    /// Forgets all blocks with a byte in these ranges, which ascend and do not overlap.
    fn forget(&mut self, gone: &[Range<u64>]) {
        let mut kept = Vec::with_capacity(self.runs.len());
        for run in self.runs.drain(..) {
            let first = gone.partition_point(|range| range.end <= run.region.start);
            let inside = gone[first..].iter();
            let mut inside = inside
                .take_while(|range| range.start < run.region.end)
                .peekable();
            if inside.peek().is_none() {
                kept.push(run);
                continue;
            }
            let mut from = run.region.start;
            for range in inside {
                kept.extend(run.within(self.block, from..range.start));
                from = from.max(range.end);
            }
            kept.extend(run.within(self.block, from..run.region.end));
        }
        self.runs = kept;
    }

    /// Moves hashes with memory that has moved (`mremap`): the hashes of the old place become those of the new one, and the old place
    /// has none any more. Returns false if the distance is no multiple of the block size. The blocks are then different ones, and none
    /// of their hashes is known.
    pub fn moved(&mut self, from: Range<u64>, to: u64) -> bool {
        let length = from.end.saturating_sub(from.start);
        let runs = self.runs.iter();
        let moving: Vec<Run> = runs
            .filter_map(|run| run.within(self.block, from.clone()))
            .collect();
        for gone in [from.clone(), to..to.saturating_add(length)] {
            if !gone.is_empty() {
                self.forget(&[gone]);
            }
        }
        let fits = to.abs_diff(from.start).is_multiple_of(self.block.bytes())
            && to.checked_add(length).is_some();
        if fits {
            for mut run in moving {
                let place = |address: u64| to + (address - from.start);
                run.region = place(run.region.start)..place(run.region.end);
                let at = self.first_beyond(run.region.start);
                self.runs.insert(at, run);
            }
        }
        fits
    }
}

/// The hashes of a table from some address on.
pub(super) struct Known<'a> {
    block: BlockSize,
    runs: &'a [Run],
}

/// The answer for blocks that lie side by side.
pub(super) enum Found<'a> {
    All(&'a [Hash]),
    Nothing,
    /// Some hashes are known; the caller asks for each block.
    Some,
}

impl<'a> Known<'a> {
    /// Finds the hashes of blocks that together have exactly this extent. Requests must ascend.
    pub fn find(&mut self, numbers: Range<u64>, extent: &Range<u64>) -> Found<'a> {
        while let [first, rest @ ..] = self.runs
            && first.region.end <= extent.start
        {
            self.runs = rest;
        }
        let run = match self.runs.first() {
            Some(run) if run.region.start < extent.end => run,
            _ => return Found::Nothing,
        };
        let region = &run.region;
        let first = region.start / self.block.bytes();
        let same = region.start <= extent.start
            && extent.end <= region.end
            && self.block.extent(numbers.start, region).start == extent.start
            && self.block.extent(numbers.end - 1, region).end == extent.end;
        match same {
            true => Found::All(
                &run.hashes[(numbers.start - first) as usize..(numbers.end - first) as usize],
            ),
            false if numbers.end - numbers.start == 1 => Found::Nothing,
            false => Found::Some,
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]
mod tests {
    use super::*;

    const BLOCK: BlockSize = BlockSize(256);

    /// Makes a hash that identifies its block's number.
    fn numbered(block: u64) -> Hash {
        Hash::of(&block.to_le_bytes())
    }

    fn table(region: Range<u64>) -> BlockHashTable {
        let hashes = BLOCK.numbers(&region).map(numbered).collect();
        BlockHashTable::of(BLOCK, region, hashes).expect("a hash a block")
    }

    fn regions(table: &BlockHashTable) -> Vec<Range<u64>> {
        for (region, hashes) in table.runs() {
            assert_eq!(hashes.len() as u64, BLOCK.count(&region));
        }
        table.runs().map(|(region, _)| region).collect()
    }

    #[test]
    fn a_hash_is_that_of_its_very_bytes() {
        let mut both = table(8192..9000);
        both.add(table(100..700)).expect("apart");
        assert_eq!(regions(&both), [100..700, 8192..9000]);
        assert_eq!(both.get(&(256..512)), Some(numbered(1)));
        assert_eq!(both.get(&(100..256)), Some(numbered(0)));
        assert_eq!(both.get(&(512..700)), Some(numbered(2)));
        assert_eq!(both.get(&(8960..9000)), Some(numbered(35)));
        // Blocks with other ends are other blocks.
        for unknown in [0..256, 512..768, 512..699, 768..1024, 9000..9216] {
            assert_eq!(both.get(&unknown), None, "{unknown:?}");
        }
        assert_eq!(both.bytes(), HASH * (3 + 4));
        for (range, known) in [(0..50, 0), (0..300, 200), (600..8200, 108), (0..9999, 1408)] {
            assert_eq!(both.known(&range), known, "{range:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut some = table(4096..8192);
        for twice in [4000..4097, 8191..9000, 5000..6000, 0..10_000] {
            let error = some.add(table(twice.clone())).expect_err("overlaps");
            assert_eq!(error, TableError::Twice(twice));
        }
        let other = BlockHashTable::new(BlockSize::PAGE);
        let error = some.add(other).expect_err("other blocks").to_string();
        assert!(error.contains("256 bytes") && error.contains("4096 bytes"));
        let error =
            BlockHashTable::of(BLOCK, 0..512, vec![numbered(1)]).expect_err("one is missing");
        assert_eq!(
            error.to_string(),
            "0x0 to 0x200 has 2 blocks, but 1 hashes are given"
        );
        assert_eq!(regions(&some), [4096..8192]);
    }

    #[test]
    fn what_is_forgotten_is_forgotten_in_whole_blocks() {
        let mut some = table(4096..20_480);
        some.add(table(40_960..45_056)).expect("apart");
        // In any order, and more than once.
        some.forget_pages(&[4..6, 1..1, 2..3, 4..5]);
        assert_eq!(regions(&some), [4096..8192, 12_288..16_384, 40_960..45_056]);
        assert_eq!(some.get(&(12_288..12_544)), Some(numbered(48)));
        some.forget(&[4500..4501]);
        assert_eq!(
            regions(&some),
            [4096..4352, 4608..8192, 12_288..16_384, 40_960..45_056]
        );
        some.forget_pages(&[0..100]);
        assert_eq!(regions(&some), [0..0; 0]);
        // A block of several pages goes with any of them.
        let block = BlockSize::LARGEST;
        let mut large = BlockHashTable::of(block, 0..131_072, vec![numbered(1), numbered(2)])
            .expect("two blocks");
        large.forget_pages(&[20..21]);
        assert_eq!(large.get(&(0..65_536)), Some(numbered(1)));
        assert_eq!(large.get(&(65_536..131_072)), None);
    }

    #[test]
    fn hashes_move_with_their_memory() {
        let mut some = table(4096..12_288);
        some.add(table(65_536..69_632)).expect("apart");
        // The second of its pages moves over old ones.
        assert!(some.moved(8192..12_288, 65_536));
        assert_eq!(regions(&some), [4096..8192, 65_536..69_632]);
        assert_eq!(some.get(&(65_792..66_048)), Some(numbered(33)));
        assert_eq!(some.get(&(8192..8448)), None);
        // A distance that is no multiple of the block size.
        assert!(!some.moved(4096..8192, 100_000));
        assert_eq!(regions(&some), [65_536..69_632]);
    }
}
