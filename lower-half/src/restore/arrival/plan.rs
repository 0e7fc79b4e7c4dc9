//! Maps memory that arrives late to the chunks of an image that hold it. No I/O, no unsafe code.

use std::collections::HashMap;
use std::ops::Range;

use stillpoint_image::format::{ChunkRecord, RunRecord};

use crate::arch::PAGE;

const PAGE_BYTES: u64 = PAGE as u64;

/// A run of a chunk that belongs to late memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    end: u64,
    chunk: usize,
}

/// The memory that is to arrive, and the chunks that hold it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Memory that arrives late, in order of address.
    late: Vec<Range<u64>>,
    /// By address; they do not overlap.
    pieces: Vec<Piece>,
    /// The numbers of the chunks, in the order in which they are likely to be needed.
    order: Vec<usize>,
}

impl Plan {
    /// Makes the plan; `late` must be in order of address.
    pub fn new<'a>(
        late: Vec<Range<u64>>,
        chunks: impl Iterator<Item = (&'a ChunkRecord, &'a [RunRecord])>,
    ) -> Plan {
        let mut plan = Plan {
            late,
            ..Plan::default()
        };
        let mut ages = Vec::new();
        for (number, (chunk, runs)) in chunks.enumerate() {
            let before = plan.pieces.len();
            for run in runs {
                if plan.is_late(run) {
                    plan.pieces.push(Piece {
                        start: run.address,
                        end: run.address + u64::from(run.bytes),
                        chunk: number,
                    });
                }
            }
            if plan.pieces.len() > before {
                // The program works on memory that changed in the last epochs, so that comes first. An image's own chunks are the newest, and an origin with a
                // higher number is newer.
                let age = match chunk.origin {
                    0 => 0,
                    origin => u32::MAX - origin,
                };
                ages.push((age, number));
            }
        }
        plan.pieces.sort_unstable_by_key(|piece| piece.start);
        ages.sort_unstable();
        plan.order = ages.into_iter().map(|(_, number)| number).collect();
        plan
    }

    /// Whether a run belongs to late memory.
    pub fn is_late(&self, run: &RunRecord) -> bool {
        let index = self.late.partition_point(|range| range.end <= run.address);
        let late = self.late.get(index);
        run.space == 0 && late.is_some_and(|range| range.start <= run.address)
    }

    pub fn late(&self) -> &[Range<u64>] {
        &self.late
    }

    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the pieces that lie in a page.
    fn pieces(&self, page: u64) -> impl Iterator<Item = &Piece> {
        let first = self.pieces.partition_point(|piece| piece.end <= page);
        let rest = self.pieces[first..].iter();
        rest.take_while(move |piece| piece.start < page + PAGE_BYTES)
    }

    /// Returns the chunks that a page needs.
    pub fn chunks(&self, page: u64) -> impl Iterator<Item = usize> {
        self.pieces(page).map(|piece| piece.chunk)
    }

    /// Returns how many bytes of a page are in the image.
    fn bytes(&self, page: u64) -> u64 {
        let inside = |piece: &Piece| piece.end.min(page + PAGE_BYTES) - piece.start.max(page);
        self.pieces(page).map(inside).sum()
    }
}

/// Pages that have come only in part.
#[derive(Debug, Default)]
pub struct PartialPages(HashMap<u64, (Box<[u8; PAGE]>, u64)>);

impl PartialPages {
    /// Adds bytes that lie in one page. Returns the page once everything that the image has of it has come.
    pub fn add(&mut self, plan: &Plan, address: u64, bytes: &[u8]) -> Option<Box<[u8; PAGE]>> {
        let page = address & !(PAGE_BYTES - 1);
        let (whole, there) = self
            .0
            .entry(page)
            .or_insert_with(|| (Box::new([0; PAGE]), 0));
        let at = (address - page) as usize;
        whole[at..at + bytes.len()].copy_from_slice(bytes);
        *there += bytes.len() as u64;
        match *there >= plan.bytes(page) {
            true => self.0.remove(&page).map(|(whole, _)| whole),
            false => None,
        }
    }

    /// Returns the number of pages that are not complete.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

/// Cuts bytes at an address at the borders of pages: the incomplete page at the start, whole pages, the incomplete page at the end. Returns ranges of the
/// bytes, which may be empty.
pub fn cut(address: u64, bytes: usize) -> [Range<usize>; 3] {
    let end = address + bytes as u64;
    let first = address.next_multiple_of(PAGE_BYTES).min(end);
    let last = (end & !(PAGE_BYTES - 1)).max(first);
    let at = |place: u64| (place - address) as usize;
    [0..at(first), at(first)..at(last), at(last)..bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(origin: u32) -> ChunkRecord {
        ChunkRecord {
            offset: 0,
            checksum: 0,
            stored_bytes: 0,
            bytes: 0,
            first_run: 0,
            runs: 0,
            codec: 0,
            origin,
        }
    }

    fn run(address: u64, bytes: u32) -> RunRecord {
        RunRecord {
            address,
            bytes,
            space: 0,
        }
    }

    const P: u64 = PAGE_BYTES;

    #[test]
    fn bytes_are_cut_where_pages_are() {
        let page = PAGE;
        assert_eq!(cut(P, 2 * page), [0..0, 0..2 * page, 2 * page..2 * page]);
        assert_eq!(
            cut(P - 5, page + 9),
            [0..5, 5..page + 5, page + 5..page + 9]
        );
        // Without a whole page: all bytes in one page, or in two.
        assert_eq!(cut(P + 1, 7), [0..7, 7..7, 7..7]);
        assert_eq!(cut(P - 3, 7), [0..3, 3..3, 3..7]);
        assert_eq!(cut(2 * P - 3, 3), [0..3, 3..3, 3..3]);
    }

    #[test]
    fn a_page_is_whole_when_all_its_chunks_have_come() {
        let chunks = [chunk(2), chunk(0), chunk(1), chunk(1)];
        let runs = [
            vec![run(P, 256), run(P + 512, 3584)],
            vec![run(P + 256, 256)],
            vec![run(9 * P, 4096)],
            // This memory does not come late.
            vec![run(20 * P, 4096)],
        ];
        let both = chunks.iter().zip(runs.iter().map(Vec::as_slice));
        let plan = Plan::new(vec![P..3 * P, 9 * P..10 * P], both);
        assert_eq!(plan.order(), [1, 0, 2], "own chunks, then newer ones");
        assert_eq!(plan.chunks(P).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(plan.chunks(2 * P).count(), 0);
        assert_eq!(plan.chunks(9 * P).collect::<Vec<_>>(), [2]);
        assert!(plan.is_late(&runs[2][0]) && !plan.is_late(&runs[3][0]));
        let mut parts = PartialPages::default();
        assert_eq!(parts.add(&plan, P + 512, &[3; 3584]), None);
        assert_eq!(parts.add(&plan, P, &[1; 256]), None);
        assert_eq!(parts.left(), 1);
        let page = parts.add(&plan, P + 256, &[2; 256]).unwrap();
        assert_eq!((page[0], page[255], page[256], page[511]), (1, 1, 2, 2));
        assert!(page[512..].iter().all(|byte| *byte == 3));
        assert_eq!(parts.left(), 0);
    }

    #[test]
    fn bytes_that_no_chunk_has_are_zero() {
        let chunks = [chunk(0)];
        let runs = [vec![run(P + 100, 50), run(P + 300, 10)]];
        let both = chunks.iter().zip(runs.iter().map(Vec::as_slice));
        let late = std::iter::once(P..2 * P).collect();
        let plan = Plan::new(late, both);
        let mut parts = PartialPages::default();
        assert_eq!(parts.add(&plan, P + 300, &[7; 10]), None);
        let page = parts.add(&plan, P + 100, &[8; 50]).unwrap();
        let set: usize = page.iter().filter(|byte| **byte != 0).count();
        assert_eq!((set, page[99], page[100], page[309]), (60, 0, 8, 7));
    }
}
