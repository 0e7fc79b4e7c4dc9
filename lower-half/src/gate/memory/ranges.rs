//! The addresses outside both halves that the application has asked for: a sorted list of ranges with a fixed capacity. Pure.

use core::ops::Range;

use stillpoint_wrappers::gate::{ARENA_END, ARENA_START, LOW_END};

/// Adjacent ranges count as one, so few programs need more than a handful.
const CAPACITY: usize = 1024;

/// The list has no free entry for the change.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

pub struct Ranges {
    list: [(usize, usize); CAPACITY],
    count: usize,
}

/// Returns the parts of a range that belong to neither half by address.
pub fn elsewhere(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    [LOW_END..ARENA_START, ARENA_END..usize::MAX]
        .into_iter()
        .map(move |room| range.start.max(room.start)..range.end.min(room.end))
        .filter(|part| part.start < part.end)
}

/// Returns the parts of a range that belong to the upper half by address.
pub fn by_address(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    [0..LOW_END, ARENA_START..ARENA_END]
        .into_iter()
        .map(move |room| range.start.max(room.start)..range.end.min(room.end))
        .filter(|part| part.start < part.end)
}

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges {
            list: [(0, 0); CAPACITY],
            count: 0,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        let list = self.list.get(..self.count).unwrap_or(&[]);
        list.iter().map(|(start, end)| *start..*end)
    }

    /// Whether one more change fits, whatever it is: a range is added, or a hole made in one.
    pub fn has_room(&self) -> bool {
        self.count < CAPACITY
    }

    /// Returns the parts of `range` that are in the list.
    pub fn parts(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.iter()
            .map(move |own| own.start.max(range.start)..own.end.min(range.end))
            .filter(|part| part.start < part.end)
    }

    /// Returns the first part of `range` that is not in the list.
    pub fn gap(&self, range: Range<usize>) -> Option<Range<usize>> {
        let mut start = range.start;
        for part in self.parts(range.clone()) {
            if start < part.start {
                return Some(start..part.start);
            }
            start = part.end;
        }
        (start < range.end).then_some(start..range.end)
    }

    pub fn insert(&mut self, range: Range<usize>) -> Result<(), Full> {
        if range.is_empty() {
            return Ok(());
        }
        let (mut start, mut end) = (range.start, range.end);
        // Ranges that overlap or touch the new one are joined with it.
        let mut kept = 0;
        let mut before = 0;
        for index in 0..self.count {
            let Some(&own) = self.list.get(index) else {
                break;
            };
            if own.0 <= end && start <= own.1 {
                (start, end) = (start.min(own.0), end.max(own.1));
                continue;
            }
            if own.1 < start {
                before += 1;
            }
            self.put(kept, own);
            kept += 1;
        }
        if kept == CAPACITY {
            return Err(Full);
        }
        self.count = kept + 1;
        self.list.copy_within(before..kept, before + 1);
        self.put(before, (start, end));
        Ok(())
    }

    pub fn remove(&mut self, range: Range<usize>) -> Result<(), Full> {
        let inside = |own: Range<usize>| own.start < range.start && range.end < own.end;
        if range.is_empty() {
            return Ok(());
        }
        let around = self.iter().position(inside);
        if let Some(index) = around {
            if self.count == CAPACITY {
                return Err(Full);
            }
            let Some(&(start, end)) = self.list.get(index) else {
                return Ok(());
            };
            self.list.copy_within(index + 1..self.count, index + 2);
            self.count += 1;
            self.put(index, (start, range.start));
            self.put(index + 1, (range.end, end));
            return Ok(());
        }
        let mut kept = 0;
        for index in 0..self.count {
            let Some(&(mut start, mut end)) = self.list.get(index) else {
                break;
            };
            if start < range.end && range.start < end {
                if start < range.start {
                    end = range.start;
                } else {
                    start = range.end.min(end);
                }
            }
            if start < end {
                self.put(kept, (start, end));
                kept += 1;
            }
        }
        self.count = kept;
        Ok(())
    }

    fn put(&mut self, index: usize, range: (usize, usize)) {
        if let Some(place) = self.list.get_mut(index) {
            *place = range;
        }
    }

    /// Reads a list from an image; returns `None` if it is not a valid one.
    pub fn from_words(words: &[u64]) -> Option<Ranges> {
        let (pairs, []) = words.as_chunks::<2>() else {
            return None;
        };
        let mut ranges = Ranges::new();
        let mut last = 0;
        for [start, end] in pairs {
            let range = usize::try_from(*start).ok()?..usize::try_from(*end).ok()?;
            let alone = elsewhere(range.clone()).eq([range.clone()]);
            if range.start < last || range.is_empty() || !alone {
                return None;
            }
            last = range.end;
            ranges.insert(range).ok()?;
        }
        Some(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(ranges: &Ranges) -> Vec<(usize, usize)> {
        ranges
            .iter()
            .map(|range| (range.start, range.end))
            .collect()
    }

    #[test]
    fn every_change_leaves_exactly_what_a_set_of_pages_would_hold() {
        let mut seed = 1u64;
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % most) as usize
        };
        let mut ranges = Ranges::new();
        let mut pages = [false; 64];
        for _ in 0..20_000 {
            let start = random(64);
            let end = (start + random(12)).min(64);
            let adds = random(2) == 0;
            let done = match adds {
                true => ranges.insert(start..end),
                false => ranges.remove(start..end),
            };
            assert_eq!(done, Ok(()));
            pages[start..end].fill(adds);
            let mut expected: Vec<(usize, usize)> = vec![];
            for page in (0..64).filter(|page| pages[*page]) {
                match expected.last_mut() {
                    Some(last) if last.1 == page => last.1 = page + 1,
                    _ => expected.push((page, page + 1)),
                }
            }
            assert_eq!(listed(&ranges), expected);
            let gap = (start..end).find(|page| !pages[*page]);
            assert_eq!(ranges.gap(start..end).map(|gap| gap.start), gap);
        }
    }

    #[test]
    fn a_full_list_says_so_and_stays_as_it_is() {
        let mut ranges = Ranges::new();
        for index in 0..CAPACITY {
            assert!(ranges.has_room());
            ranges.insert(4 * index..4 * index + 3).unwrap();
        }
        assert!(!ranges.has_room());
        let before = listed(&ranges);
        assert_eq!(ranges.insert(4 * CAPACITY + 1..4 * CAPACITY + 2), Err(Full));
        assert_eq!(ranges.remove(1..2), Err(Full));
        assert_eq!(listed(&ranges), before);
        assert_eq!(ranges.insert(3..4), Ok(()));
        assert_eq!(ranges.remove(8..11), Ok(()));
        assert!(ranges.has_room());
    }

    #[test]
    fn what_belongs_to_somebody_by_address_is_never_written_down() {
        let parts = |range| elsewhere(range).collect::<Vec<_>>();
        assert_eq!(parts(0..LOW_END), []);
        assert_eq!(parts(ARENA_START..ARENA_END), []);
        assert!(
            parts(LOW_END - 1..LOW_END + 1)
                .into_iter()
                .eq(std::iter::once(LOW_END..LOW_END + 1))
        );
        assert_eq!(
            parts(0..usize::MAX),
            [LOW_END..ARENA_START, ARENA_END..usize::MAX]
        );
    }

    #[test]
    fn only_sound_lists_are_taken_up() {
        let words = |list: &[(usize, usize)]| -> Vec<u64> {
            let pairs = list.iter();
            pairs
                .flat_map(|(start, end)| [*start as u64, *end as u64])
                .collect()
        };
        let sound = [(LOW_END, LOW_END + 8), (ARENA_END + 1, ARENA_END + 2)];
        let taken = Ranges::from_words(&words(&sound)).map(|ranges| listed(&ranges));
        assert_eq!(taken.as_deref(), Some(&sound[..]));
        for bad in [
            &[(LOW_END - 1, LOW_END + 8)][..],
            &[(LOW_END, LOW_END)],
            &[(ARENA_END + 8, ARENA_END + 9), (ARENA_END, ARENA_END + 1)],
        ] {
            assert!(Ranges::from_words(&words(bad)).is_none());
        }
        assert!(Ranges::from_words(&[LOW_END as u64]).is_none());
    }
}
