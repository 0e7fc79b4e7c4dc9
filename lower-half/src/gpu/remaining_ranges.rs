//! Which bytes of a memory are still expected, and whether they have come. Pure.

use std::ops::Range;

/// Ranges of bytes that are expected, each once and in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainingRanges {
    ranges: Vec<Range<u64>>,
    /// The index of the first range that has not come completely.
    next: usize,
}

impl RemainingRanges {
    /// All of a memory.
    pub fn all(bytes: u64) -> RemainingRanges {
        RemainingRanges::of(std::iter::once(0..bytes))
    }

    /// Ranges of it, which ascend and do not overlap.
    pub fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> RemainingRanges {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        RemainingRanges {
            ranges: ranges.collect(),
            next: 0,
        }
    }

    /// Returns the ranges that are still to come.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges[self.next..]
    }

    /// Records that `bytes` bytes have come, starting at `offset`; returns false if other bytes are next.
    pub fn has_come(&mut self, offset: u64, bytes: u64) -> bool {
        let Some(first) = self.ranges.get_mut(self.next) else {
            return false;
        };
        if bytes == 0 || first.start != offset || bytes > first.end - first.start {
            return false;
        }
        first.start += bytes;
        if first.is_empty() {
            self.next += 1;
        }
        true
    }

    /// Returns the number of bytes that are still to come.
    pub fn left(&self) -> u64 {
        let left = self.ranges().iter();
        left.map(|range| range.end - range.start).sum()
    }
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_their_order_and_once() {
        let mut wanted = RemainingRanges::of([0..10, 15..15, 20..30]);
        assert_eq!(wanted.left(), 20);
        for (offset, bytes) in [(1, 1), (0, 11), (20, 1), (0, 0)] {
            assert!(!wanted.has_come(offset, bytes), "{offset}, {bytes}");
        }
        assert!(wanted.has_come(0, 4) && wanted.has_come(4, 6));
        for (offset, bytes) in [(0, 4), (10, 1), (15, 1), (19, 2), (21, 1)] {
            assert!(!wanted.has_come(offset, bytes), "{offset}, {bytes}");
        }
        assert_eq!(wanted.ranges(), [20..30]);
        assert!(wanted.has_come(20, 10));
        assert!(wanted.left() == 0 && !wanted.has_come(30, 1));
        assert_eq!(RemainingRanges::all(0).left(), 0);
    }
}
