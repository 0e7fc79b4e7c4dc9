//! Ranges of memory as an increment counts them: in pages, in bytes, and in the regions that the model decides on. Pure.

use std::collections::BTreeMap;
use std::ops::Range;

use stillpoint_image::MOST_RUNS;
use stillpoint_image::format::PAGE;
use stillpoint_incremental::blocks::BlockHashTable;
use stillpoint_incremental::viability::{RegionChanges, by_region};

/// Returns the bytes to write in each of the model's regions: of this memory, those that were written to, and those that are written again
/// for another reason.
pub(super) fn parts(
    private: &[Range<usize>],
    written: &[Range<usize>],
    again: &[Range<usize>],
    known: Option<&BlockHashTable>,
) -> BTreeMap<u64, RegionChanges> {
    let mut parts = BTreeMap::<u64, RegionChanges>::new();
    for (region, range) in by_region(wide(private)) {
        parts.entry(region).or_default().memory += range.end - range.start;
    }
    for (region, range) in by_region(wide(written)) {
        let part = parts.entry(region).or_default();
        part.page_dirty += range.end - range.start;
        part.known += known.map_or(0, |table| table.known(&range));
    }
    for (region, range) in by_region(wide(again)) {
        parts.entry(region).or_default().again += range.end - range.start;
    }
    parts
}

/// The most stretches into which an increment may divide memory. Each makes up to three runs of the next image: itself, and dead or carried
/// ones on both sides.
const MOST_STRETCHES: usize = MOST_RUNS / 8;

/// Returns whether an image of so many runs, with so many stretches that do not stay, is better written anew. With more runs than an image
/// may have, there could be no more epochs.
pub(super) fn is_scattered(runs: usize, stretches: usize) -> bool {
    runs > MOST_RUNS / 4 || stretches > MOST_STRETCHES
}

pub(super) fn bytes(ranges: &[Range<usize>]) -> u64 {
    ranges.iter().map(|range| range.len() as u64).sum()
}

pub(super) fn whole_pages(range: Range<usize>) -> Range<usize> {
    range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE)
}

pub(super) fn wide(ranges: &[Range<usize>]) -> Vec<Range<u64>> {
    let wide = |range: &Range<usize>| range.start as u64..range.end as u64;
    ranges.iter().map(wide).collect()
}

pub(super) fn narrow(ranges: &[Range<u64>]) -> Vec<Range<usize>> {
    let narrow = |range: &Range<u64>| range.start as usize..range.end as usize;
    ranges.iter().map(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carried and written runs together are never more than an image may have.
    #[test]
    fn what_is_not_too_scattered_has_room_in_an_image() {
        let (runs, stretches) = (MOST_RUNS / 4, MOST_STRETCHES);
        assert!(!is_scattered(runs, stretches));
        assert!(is_scattered(runs + 1, 0) && is_scattered(0, stretches + 1));
        // Each stretch cuts a run, or leaves two ends of it; and it is a run itself.
        assert!(runs + 2 * (stretches + 1) + stretches < MOST_RUNS);
    }
}
