//! The changes in a region since its table was made, and its new table.

use std::ops::Range;

use super::table::{Found, Known};
use super::{BlockHashTable, BlockSize, Hash, PAGE, is_zero};

/// The most bytes that are requested at once.
const PIECE: u64 = BlockSize::LARGEST.0;

/// The most hashes that room is reserved for in advance. A region may be too large to be read; it then fails at its first
/// bytes.
const ROOM: u64 = 1 << 20;

/// The source of the bytes: read in place, or copied out first.
pub trait Memory {
    type Error;

    /// Returns the bytes between two addresses of the region, never more than 64 KiB.
    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], Self::Error>;
}

/// Bytes in memory, beginning at an address.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    pub start: u64,
    pub bytes: &'a [u8],
}

impl Memory for Slice<'_> {
    type Error = std::convert::Infallible;

    /// Returns no bytes if some of them lie outside.
    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], Self::Error> {
        let place = |address: u64| {
            let offset = address.checked_sub(self.start)?;
            usize::try_from(offset).ok()
        };
        let range = place(range.start).zip(place(range.end));
        let bytes = range.and_then(|(start, end)| self.bytes.get(start..end));
        Ok(bytes.unwrap_or_default())
    }
}

/// A comparison that cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompareError<E> {
    #[error("the region ends at {:#x}, before it begins at {:#x}", .0.end, .0.start)]
    Backwards(Range<u64>),
    #[error("the dirty pages {} to {} end before they begin, or begin before the range before them ends: sort and join the ranges", .0.start, .0.end)]
    Order(Range<u64>),
    #[error("{:#x} to {:#x} should be read, but {given} bytes came", .asked.start, .asked.end)]
    Short { asked: Range<u64>, given: usize },
    #[error("{0}")]
    Memory(E),
}

/// One or more blocks, side by side, that have changed or are new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The range: whole blocks, except for short ones at the region's ends.
    pub at: Range<u64>,
    /// Whether the bytes are all zeros, so that there are none to keep.
    pub zero: bool,
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compared {
    /// The region's hashes now: they go into the next epoch's table.
    pub table: BlockHashTable,
    /// By address.
    pub changes: Vec<Change>,
    pub counts: Counts,
}

/// Bytes of a region, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Bytes in dirty pages: `|c|`, the size of a page-based checkpoint.
    pub page_dirty: u64,
    /// The part of `page_dirty` in blocks that the last epoch's table knew.
    pub page_dirty_known: u64,
    /// Bytes that were hashed.
    pub hashed: u64,
    /// Bytes in blocks that have changed or are new, the size of a hash-based checkpoint.
    pub changed: u64,
    /// The part of `changed` in blocks that the last epoch's table knew.
    pub changed_known: u64,
    /// The part of `changed` in blocks of zeros.
    pub zero: u64,
}

impl Counts {
    /// Returns the paper's alpha as it turned out: how much less there was to write than whole pages. It counts only blocks that the table
    /// knew, since new ones are written in any case. Returns `None` if there were none. Alpha is below zero if blocks are larger than
    /// pages and most of a block's pages were not dirty.
    pub fn alpha(&self) -> Option<f64> {
        let share = self.changed_known as f64 / self.page_dirty_known as f64;
        (self.page_dirty_known > 0).then_some(1.0 - share)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.page_dirty += other.page_dirty;
        self.page_dirty_known += other.page_dirty_known;
        self.hashed += other.hashed;
        self.changed += other.changed;
        self.changed_known += other.changed_known;
        self.zero += other.zero;
    }
}

impl BlockHashTable {
    /// Finds what has changed in a region since this table was made.
    ///
    /// `dirty` are the numbers of pages that were written to since then, ascending; ranges outside of the region may be among them. A
    /// page that was newly mapped counts as written to. The comparison hashes every block that has a byte in such a page, and every
    /// block that the table does not know. Unknown blocks count as changed.
    pub fn compare<M: Memory>(
        &self,
        region: Range<u64>,
        dirty: &[Range<u64>],
        memory: &mut M,
    ) -> Result<Compared, CompareError<M::Error>> {
        if region.end < region.start {
            return Err(CompareError::Backwards(region));
        }
        let mut dirty = Dirty::of(dirty, &region)?;
        let block = self.block_size();
        let end = block.numbers(&region).end;
        let mut known = self.from(region.start);
        let mut made = Made::new(block, &region);
        while made.next < end {
            let (mut piece, mut length) = (Vec::new(), 0);
            let mut number = made.next;
            while number < end && length < PIECE {
                let (numbers, at, old) = together(&mut known, number, block, &region);
                let bytes = at.end - at.start;
                let written = dirty.within(&at);
                if let (Some(old), 0) = (old, written) {
                    // Known blocks without dirty pages are not read.
                    if piece.is_empty() {
                        made.keep(old);
                        number = numbers.end;
                        continue;
                    }
                    break;
                }
                if length + bytes > PIECE {
                    break;
                }
                length += bytes;
                number = numbers.end;
                piece.push(Looked { at, old, written });
            }
            if let (Some(first), Some(last)) = (piece.first(), piece.last()) {
                let asked = first.at.start..last.at.end;
                let bytes = memory.bytes(asked.clone()).map_err(CompareError::Memory)?;
                if bytes.len() as u64 != length {
                    let given = bytes.len();
                    return Err(CompareError::Short { asked, given });
                }
                made.look(&piece, bytes);
            }
        }
        let Made {
            hashes,
            changes,
            counts,
            ..
        } = made;
        let table = BlockHashTable::of(block, region, hashes).expect("a hash for each block");
        Ok(Compared {
            table,
            changes,
            counts,
        })
    }
}

/// Groups blocks from one block on: the blocks of a page, or one block of several pages. Takes a single block if the table
/// knows some but not all blocks of the page. Returns their numbers, their bytes, and their hashes.
fn together<'a>(
    known: &mut Known<'a>,
    first: u64,
    block: BlockSize,
    region: &Range<u64>,
) -> (Range<u64>, Range<u64>, Option<&'a [Hash]>) {
    let a_page = (PAGE / block.bytes()).max(1);
    let next_page = (first / a_page + 1) * a_page;
    let several = first..next_page.min(block.numbers(region).end);
    let bytes = |numbers: &Range<u64>| {
        block.extent(numbers.start, region).start..block.extent(numbers.end - 1, region).end
    };
    let at = bytes(&several);
    match known.find(several.clone(), &at) {
        Found::All(hashes) => return (several, at, Some(hashes)),
        Found::Nothing => return (several, at, None),
        Found::Some => {}
    }
    let one = first..first + 1;
    let at = bytes(&one);
    let old = match known.find(one.clone(), &at) {
        Found::All(hashes) => Some(hashes),
        Found::Nothing | Found::Some => None,
    };
    (one, at, old)
}

/// Blocks side by side that are to be hashed.
struct Looked<'a> {
    at: Range<u64>,
    /// A hash for each, if they are known.
    old: Option<&'a [Hash]>,
    /// Bytes in dirty pages.
    written: u64,
}

/// The result of a comparison so far.
struct Made {
    block: BlockSize,
    /// The number of the first block that has no hash yet.
    next: u64,
    hashes: Vec<Hash>,
    changes: Vec<Change>,
    counts: Counts,
}

impl Made {
    fn new(block: BlockSize, region: &Range<u64>) -> Made {
        let numbers = block.numbers(region);
        Made {
            block,
            next: numbers.start,
            hashes: Vec::with_capacity((numbers.end - numbers.start).min(ROOM) as usize),
            changes: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Takes over blocks that have not changed.
    fn keep(&mut self, hashes: &[Hash]) {
        self.hashes.extend_from_slice(hashes);
        self.next += hashes.len() as u64;
    }

    /// Hashes blocks that lie side by side.
    fn look(&mut self, piece: &[Looked<'_>], bytes: &[u8]) {
        let mut rest = bytes;
        for Looked { at, old, written } in piece {
            let length = at.end - at.start;
            let (bytes, behind) = rest.split_at(length as usize);
            rest = behind;
            self.counts.hashed += length;
            self.counts.page_dirty += written;
            if old.is_some() {
                self.counts.page_dirty_known += written;
            }
            // The first block may be short, because its region begins within it.
            let size = self.block.bytes();
            let first = (size - at.start % size).min(length);
            let (first, others) = bytes.split_at(first as usize);
            let blocks = std::iter::once(first).chain(others.chunks(size as usize));
            let mut start = at.start;
            for (number, bytes) in blocks.enumerate() {
                let new = Hash::of(bytes);
                self.hashes.push(new);
                self.next += 1;
                let end = start + bytes.len() as u64;
                let old = old.and_then(|old| old.get(number));
                if old != Some(&new) {
                    self.change(start..end, bytes, old.is_some());
                }
                start = end;
            }
        }
    }

    fn change(&mut self, at: Range<u64>, bytes: &[u8], known: bool) {
        let (length, zero) = (at.end - at.start, is_zero(bytes));
        self.counts.changed += length;
        if known {
            self.counts.changed_known += length;
        }
        if zero {
            self.counts.zero += length;
        }
        match self.changes.last_mut() {
            Some(last) if last.at.end == at.start && last.zero == zero => last.at.end = at.end,
            _ => self.changes.push(Change { at, zero }),
        }
    }
}

/// The dirty pages, in a single pass.
struct Dirty<'a> {
    ranges: &'a [Range<u64>],
}

impl<'a> Dirty<'a> {
    fn of<E>(ranges: &'a [Range<u64>], region: &Range<u64>) -> Result<Dirty<'a>, CompareError<E>> {
        let mut end = 0;
        for range in ranges {
            if range.start < end || range.end < range.start {
                return Err(CompareError::Order(range.clone()));
            }
            end = range.end;
        }
        let first = ranges.partition_point(|range| addresses(range).end <= region.start);
        let ranges = &ranges[first..];
        Ok(Dirty { ranges })
    }

    /// Counts the bytes of a block that lie in dirty pages. The blocks must ascend.
    fn within(&mut self, at: &Range<u64>) -> u64 {
        while let [first, rest @ ..] = self.ranges
            && addresses(first).end <= at.start
        {
            self.ranges = rest;
        }
        let ranges = self.ranges.iter().map(addresses);
        let inside = ranges.take_while(|range| range.start < at.end);
        let common = inside.map(|range| {
            let (start, end) = (range.start.max(at.start), range.end.min(at.end));
            end.saturating_sub(start)
        });
        common.sum()
    }
}

/// Returns the addresses of pages.
fn addresses(pages: &Range<u64>) -> Range<u64> {
    pages.start.saturating_mul(PAGE)..pages.end.saturating_mul(PAGE)
}
