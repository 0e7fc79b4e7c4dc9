//! Compares hashes to find the blocks of written pages that differ from the epoch before.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use stillpoint_image::crew::{Crew, Steps};
use stillpoint_image::format::CHUNK_BYTES;
use stillpoint_image::pages::Pages;
use stillpoint_incremental::blocks::{
    BlockHashTable, BlockSize, Compared, Counts, Memory, PAGE, stretches,
};
use stillpoint_incremental::viability::{REGION, by_region};

use crate::ground::ranges;

/// The result of a comparison.
pub struct Difference {
    /// The memory to write: blocks that differ and are not zero, and memory that is written along with them.
    pub changed: Vec<Range<usize>>,
    /// Blocks that differ, including those that are zero.
    pub otherwise: Vec<Range<usize>>,
    /// Memory that has not changed and is not written along.
    pub unchanged: Vec<Range<usize>>,
    /// The hashes of all compared memory.
    pub table: BlockHashTable,
    /// The counts, by the numbers of the model's regions.
    pub counts: BTreeMap<u64, Counts>,
}

/// The bytes of one piece.
struct Source<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Memory for Source<'_> {
    type Error = io::Error;

    fn bytes(&mut self, range: Range<u64>) -> io::Result<&[u8]> {
        let inside = range.start.checked_sub(self.start);
        let inside = inside.map(|at| at as usize..(range.end - self.start) as usize);
        let bytes = inside.and_then(|inside| self.bytes.get(inside));
        bytes.ok_or_else(|| io::Error::other("bytes are compared that were not asked for"))
    }
}

/// Divides pieces into batches for the threads: each batch has at most a chunk's length, and each piece lies in one region of the model.
fn batches(pieces: &[Range<u64>]) -> Vec<&[Range<u64>]> {
    let (mut batches, mut first, mut bytes) = (Vec::new(), 0, 0);
    for (number, piece) in pieces.iter().enumerate() {
        let length = piece.end - piece.start;
        if bytes + length > CHUNK_BYTES as u64 && number > first {
            batches.push(&pieces[first..number]);
            (first, bytes) = (number, 0);
        }
        bytes += length;
    }
    if first < pieces.len() {
        batches.push(&pieces[first..]);
    }
    batches
}

/// One thread's part of a comparison.
struct ComparisonWorker<'a> {
    old: &'a BlockHashTable,
    pages: &'a dyn Pages,
    batches: &'a [&'a [Range<u64>]],
    next: &'a AtomicUsize,
    room: Vec<u8>,
    /// For each batch, with its number, the region in the model and the result of each of its pieces.
    found: Vec<(usize, Vec<(u64, Compared)>)>,
}

impl Steps for ComparisonWorker<'_> {
    fn step(&mut self) -> io::Result<bool> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(batch) = self.batches.get(number) else {
            return Ok(false);
        };
        let bytes: u64 = batch.iter().map(|piece| piece.end - piece.start).sum();
        self.room.resize(bytes as usize, 0);
        self.pages.gather(batch, &mut self.room)?;
        let (mut all, mut rest) = (Vec::with_capacity(batch.len()), self.room.as_slice());
        for piece in *batch {
            let (bytes, more) = rest.split_at((piece.end - piece.start) as usize);
            rest = more;
            let start = piece.start;
            let mut source = Source { start, bytes };
            let dirty = piece.start / PAGE..piece.end.div_ceil(PAGE);
            let compared = self
                .old
                .compare(piece.clone(), std::slice::from_ref(&dirty), &mut source)
                .map_err(io::Error::other)?;
            all.push((piece.start / REGION, compared));
        }
        self.found.push((number, all));
        Ok(true)
    }
}

/// Compares ranges of whole pages with their hashes in the table.
pub fn compare(
    old: &BlockHashTable,
    ranges: &[Range<usize>],
    pages: &dyn Pages,
    crew: Crew,
) -> io::Result<Difference> {
    let wide = ranges
        .iter()
        .map(|range| range.start as u64..range.end as u64);
    let pieces: Vec<Range<u64>> = by_region(wide).map(|(_, piece)| piece).collect();
    let batches = batches(&pieces);
    let next = AtomicUsize::new(0);
    let threads = crew.threads().clamp(1, batches.len().max(1));
    let part = |_| ComparisonWorker {
        old,
        pages,
        batches: &batches,
        next: &next,
        room: Vec::new(),
        found: Vec::new(),
    };
    let parts = crew.carry_out((0..threads).map(part).collect())?;
    let mut found: Vec<_> = parts.into_iter().flat_map(|part| part.found).collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    let found = found.into_iter().flat_map(|(_, all)| all);
    together(old.block_size(), ranges, found)
}

fn together(
    block: BlockSize,
    ranges: &[Range<usize>],
    all: impl Iterator<Item = (u64, Compared)>,
) -> io::Result<Difference> {
    let (mut table, mut counts) = (BlockHashTable::new(block), BTreeMap::<u64, Counts>::new());
    let (mut changed, mut otherwise) = (Vec::new(), Vec::new());
    for (region, compared) in all {
        *counts.entry(region).or_default() += compared.counts;
        table.add(compared.table).map_err(io::Error::other)?;
        let narrow = |at: Range<u64>| at.start as usize..at.end as usize;
        changed.extend(stretches(&compared.changes).into_iter().map(narrow));
        let differs = compared.changes.into_iter().map(|change| narrow(change.at));
        otherwise.extend(differs);
    }
    let otherwise = ranges::joined(otherwise);
    let (_, unchanged) = ranges::split(ranges, &otherwise);
    let (_, unchanged) = ranges::split(&unchanged, &changed);
    Ok(Difference {
        changed,
        otherwise,
        unchanged,
        table,
        counts,
    })
}

/// Removes from the table everything outside these ranges of whole pages, which are in order.
pub fn only(mut table: BlockHashTable, ranges: &[Range<usize>]) -> BlockHashTable {
    let starts = ranges.iter().map(|range| range.end as u64 / PAGE);
    let ends = ranges.iter().map(|range| range.start as u64 / PAGE);
    let between = std::iter::once(0)
        .chain(starts)
        .zip(ends.chain([u64::MAX / PAGE]));
    let gaps: Vec<Range<u64>> = between.map(|(start, end)| start..end).collect();
    table.forget_pages(&gaps);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory whose byte 0 has address 0.
    struct Here(Vec<u8>);

    impl Pages for Here {
        fn copy(&self, from: u64, into: &mut [u8]) -> io::Result<()> {
            into.copy_from_slice(&self.0[from as usize..][..into.len()]);
            Ok(())
        }
    }

    #[test]
    fn blocks_that_differ_are_told_from_those_that_were_only_written() {
        let size = BlockSize::SMALLEST;
        let (page, block) = (PAGE as usize, size.bytes() as usize);
        // The model's regions have this length, too.
        assert_eq!(CHUNK_BYTES as u64, REGION);
        let bytes = 3 * CHUNK_BYTES + 5 * page;
        let mut memory = Here((0..bytes).map(|at| (at / 3) as u8 | 1).collect());
        let whole = 0..bytes;
        let first = compare(
            &BlockHashTable::new(size),
            std::slice::from_ref(&whole),
            &memory,
            Crew::of(3),
        )
        .unwrap();
        // Nothing is known yet.
        assert_eq!(ranges::joined(first.changed), std::slice::from_ref(&whole));
        assert!(first.unchanged.is_empty());
        memory.0[10 * page + 3 * block + 7] ^= 8;
        memory.0[CHUNK_BYTES..][..block].fill(0);
        let written = [9 * page..12 * page, CHUNK_BYTES - page..CHUNK_BYTES + page];
        let second = compare(&first.table, &written, &memory, Crew::of(2)).unwrap();
        let differs = 10 * page + 3 * block..10 * page + 4 * block;
        assert_eq!(second.changed, std::slice::from_ref(&differs));
        let zero = CHUNK_BYTES..CHUNK_BYTES + block;
        let expected = [
            9 * page..differs.start,
            differs.end..12 * page,
            CHUNK_BYTES - page..zero.start,
            zero.end..CHUNK_BYTES + page,
        ];
        assert_eq!(second.unchanged, expected);
        assert_eq!(second.otherwise, [differs, zero]);
        // One block has changed in each region, of four pages and of one.
        let alphas: Vec<_> = second.counts.values().map(Counts::alpha).collect();
        let alpha = |pages: usize| Some(1.0 - 1.0 / (pages * page / block) as f64);
        assert_eq!(alphas, [alpha(4), alpha(1)]);
        // Memory that was written without being hashed is not known any more.
        let (_, unchanged) = ranges::split(std::slice::from_ref(&whole), &written);
        let known = only(first.table, &unchanged);
        let third = compare(&known, &written, &memory, Crew::of(1)).unwrap();
        let all: usize = third.changed.iter().map(Range::len).sum();
        assert_eq!(all, 5 * page - block);
        assert!(third.unchanged.is_empty());
    }
}
