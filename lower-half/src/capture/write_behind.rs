//! Decides which memory of an image is written while the application runs, and how much.
//!
//! A [`Snapshot`](super::snapshot::Snapshot) keeps private memory as it was. Other memory is written before the application runs on: memory
//! that other processes write to as well, that a child process does not get, or for whose copies there is no room.

use std::ops::Range;

use stillpoint_image::format::vm_flags;

use super::maps::Mapping;
use crate::arch::PAGE;
use crate::ground::free;

/// The settings for an application that runs on while its image is written.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The most bytes of copies, or `None` for a fair part of the free memory.
    pub most: Option<u64>,
}

/// Memory to write, by the time at which it is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parted {
    /// Written while the application stands still.
    pub first: Vec<Range<usize>>,
    /// Written then, too, but could have waited if there were room.
    pub without_room: Vec<Range<usize>>,
    /// Written while the application runs.
    pub later: Vec<Range<usize>>,
}

impl Behind {
    /// Divides the memory that is to be written; each range lies in one mapping.
    pub fn part(&self, private: &[Range<usize>], mappings: &[Mapping]) -> Parted {
        part(
            private,
            mappings,
            self.most.unwrap_or_else(free::for_copies),
        )
    }
}

fn part(private: &[Range<usize>], mappings: &[Mapping], room: u64) -> Parted {
    let mut parted = Parted::default();
    let bytes: u64 = private.iter().map(|range| range.len() as u64).sum();
    let mut beyond = bytes.saturating_sub(room);
    for range in private {
        let index = mappings.partition_point(|mapping| mapping.end <= range.start);
        if !mappings.get(index).is_some_and(is_kept_by_a_child) {
            beyond = beyond.saturating_sub(range.len() as u64);
            parted.first.push(range.clone());
        } else if beyond == 0 {
            parted.later.push(range.clone());
        } else {
            // Whole pages.
            let length = range.len().min((beyond as usize).next_multiple_of(PAGE));
            let (now, later) = (
                range.start..range.start + length,
                range.start + length..range.end,
            );
            beyond = beyond.saturating_sub(length as u64);
            parted.without_room.push(now);
            if !later.is_empty() {
                parted.later.push(later);
            }
        }
    }
    parted
}

/// Returns whether a child process keeps the mapping's pages as they were: it gets them, for itself, and there is room for two of each.
fn is_kept_by_a_child(mapping: &Mapping) -> bool {
    let otherwise = vm_flags::DONT_FORK | vm_flags::WIPE_ON_FORK | vm_flags::HUGE_TLB;
    !mapping.shared && mapping.vm_flags & otherwise == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: usize, end: usize, shared: bool, vm_flags: u64) -> Mapping {
        Mapping {
            start,
            end,
            shared,
            vm_flags,
            ..Mapping::default()
        }
    }

    #[test]
    fn what_no_child_keeps_comes_first_and_what_has_no_room_before_the_rest() {
        let page = PAGE;
        let at = |from: usize, to: usize| from * page..to * page;
        let mappings = [
            mapping(0, 10 * page, false, 0),
            mapping(10 * page, 20 * page, true, 0),
            mapping(20 * page, 30 * page, false, vm_flags::DONT_FORK),
            mapping(30 * page, 40 * page, false, vm_flags::LOCKED),
        ];
        let private = [at(0, 4), at(6, 10), at(12, 14), at(20, 21), at(30, 40)];
        let all = part(&private, &mappings, u64::MAX);
        assert_eq!(all.first, [at(12, 14), at(20, 21)]);
        assert_eq!(all.later, [at(0, 4), at(6, 10), at(30, 40)]);
        assert!(all.without_room.is_empty());
        // 21 pages in all, and room for 14: the lowest ones do not wait.
        let some = part(&private, &mappings, 14 * page as u64);
        assert_eq!(some.without_room, [at(0, 4), at(6, 9)]);
        assert_eq!(some.later, [at(9, 10), at(30, 40)]);
        let none = part(&private, &mappings, 0);
        assert!(none.later.is_empty());
    }
}
