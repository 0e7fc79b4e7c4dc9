//! Where memory goes for which the application asks no address: next-fit, small and large mappings in rooms of their own, each
//! tried with MAP_FIXED_NOREPLACE: the kernel alone knows what is free, since `munmap` is not trapped there.

use core::ops::Range;

use super::ranges::Ranges;
use super::{HUGE, PAGE, map_free, up};
use crate::arch::layout::{BREAK_START, LARGE, MORE_CODE, MORE_LARGE, MORE_SMALL, SMALL};
use crate::arch::syscall::failed;
use crate::gate::call::errno;

/// Mappings from this size on are first tried where the last one of about that size went: it may be free again.
pub const WORTH_REUSING: usize = 1 << 20;
/// How far from a page table's begin a large mapping begins that is not of whole huge pages. What is given back is taken from the TLB page by page, counted from there, where
/// that is at most 33 pages (`tlb_single_page_flush_ceiling`), and at once where it is more: which takes 1.3 us less than one page. The kernel's own places are anywhere.
const BEHIND_BEGIN: usize = 64 * PAGE;
/// Attempts to find a free place before a room counts as full.
const ATTEMPTS: usize = 1 << 18;
/// No file that is larger is a program's code.
const MOST_CODE: usize = 1 << 36;

/// A room, and where the search in it goes on.
pub struct Room {
    pub place: Range<usize>,
    pub next: usize,
}

impl Room {
    const fn new(place: Range<usize>) -> Room {
        let next = place.start;
        Room { place, next }
    }

    /// Maps at the next free place; ENOMEM where there is none.
    fn map(&mut self, bytes: usize, alignment: usize, rest: [usize; 4]) -> isize {
        let [protection, flags, fd, offset] = rest;
        let span = up(bytes, PAGE);
        let mut at = begin(self.next, span, alignment);
        let mut wrapped = false;
        for _ in 0..ATTEMPTS {
            if at + span > self.place.end {
                if wrapped {
                    break;
                }
                wrapped = true;
                at = begin(self.place.start, span, alignment);
                continue;
            }
            let result = map_free(at, bytes, protection, flags, fd, offset);
            if result != errno(libc::EEXIST) {
                if !failed(result) {
                    self.next = at + up(span, alignment.min(HUGE));
                }
                return result;
            }
            at = begin(at + up(span, alignment), span, alignment);
        }
        errno(libc::ENOMEM)
    }
}

/// Where a mapping from there on begins.
fn begin(from: usize, span: usize, alignment: usize) -> usize {
    let at = up(from, alignment);
    let table = at & !(HUGE - 1);
    match span >= HUGE && alignment < HUGE && at - table < BEHIND_BEGIN {
        true => table + BEHIND_BEGIN,
        false => at,
    }
}

/// Where its calls are seen (`gate::CODE_END`): in the first room, or in one of its own.
fn place_code(
    rooms: &mut [Room; 2],
    preferred: usize,
    bytes: usize,
    alignment: usize,
    rest: [usize; 4],
) -> isize {
    let [first, _] = rooms;
    let mut more = Room::new(MORE_CODE);
    let order = match preferred {
        0 => [first, &mut more],
        _ => [&mut more, first],
    };
    let mut result = errno(libc::ENOMEM);
    for room in order {
        result = room.map(bytes, alignment, rest);
        if result != errno(libc::ENOMEM) {
            break;
        }
    }
    result
}

pub struct Arena {
    /// Rooms of small mappings and of large ones: the first, and the one for when that is full.
    pub rooms: [[Room; 2]; 2],
    /// Which of two rooms has had room last.
    preferred: [usize; 2],
    /// Last place of a mapping by the size's logarithm.
    last: [usize; 64],
    /// The program break.
    pub end: usize,
    /// What the application has asked for where nothing belongs to it by address.
    pub asked: Ranges,
}

impl Arena {
    pub const fn new() -> Arena {
        Arena {
            rooms: [
                [Room::new(SMALL), Room::new(MORE_SMALL)],
                [Room::new(LARGE), Room::new(MORE_LARGE)],
            ],
            preferred: [0; 2],
            last: [0; 64],
            end: BREAK_START,
            asked: Ranges::new(),
        }
    }

    /// Maps `bytes` at the next free place, a multiple of `alignment`.
    pub fn place(&mut self, bytes: usize, alignment: usize, rest: [usize; 4]) -> isize {
        let [protection, flags, fd, offset] = rest;
        if bytes == 0 {
            return errno(libc::EINVAL);
        }
        let span = up(bytes, PAGE);
        if span == 0 || span > MORE_LARGE.end - MORE_LARGE.start {
            return errno(libc::ENOMEM);
        }
        // A loader maps the whole file before its code.
        let code = span <= MOST_CODE
            && (protection & libc::PROT_EXEC as usize != 0
                || flags & libc::MAP_ANONYMOUS as usize == 0);
        let class = span.ilog2() as usize & 63;
        let last = self.last.get(class).copied().unwrap_or(0);
        if span >= WORTH_REUSING
            && last != 0
            && last % alignment == 0
            && self.holds(last, span)
            && !(code && (MORE_SMALL.start..MORE_LARGE.end).contains(&last))
        {
            let result = map_free(last, bytes, protection, flags, fd, offset);
            if result == last as isize {
                return result;
            }
        }
        let kind = usize::from(span >= HUGE || alignment >= HUGE);
        let (Some(rooms), Some(preferred)) =
            (self.rooms.get_mut(kind), self.preferred.get_mut(kind))
        else {
            return errno(libc::ENOMEM);
        };
        let (mut result, mut too_large) = (errno(libc::ENOMEM), false);
        if code {
            return place_code(rooms, *preferred, bytes, alignment, rest);
        }
        for which in [*preferred, 1 - *preferred] {
            let Some(room) = rooms.get_mut(which) else {
                break;
            };
            let most = room.place.end - room.place.start;
            if span <= most {
                result = room.map(bytes, alignment, rest);
            }
            if !failed(result) {
                if !too_large {
                    *preferred = which;
                }
                if let Some(last) = self.last.get_mut(class) {
                    *last = result as usize;
                }
                return result;
            }
            if result != errno(libc::ENOMEM) {
                return result;
            }
            // That there is no place for much says nothing about smaller mappings.
            too_large = span > most / 64;
        }
        result
    }

    /// Whether all of it lies in one room.
    fn holds(&self, start: usize, span: usize) -> bool {
        let mut rooms = self.rooms.iter().flatten();
        rooms.any(|room| room.place.start <= start && start + span <= room.place.end)
    }

    /// A free place of `bytes`, held by an inaccessible mapping.
    pub fn reserve(&mut self, bytes: usize, alignment: usize) -> isize {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
        let protection = libc::PROT_NONE as usize;
        self.place(bytes, alignment, [protection, flags, usize::MAX, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_begins_behind_a_tables_begin_unless_it_is_of_whole_huge_pages() {
        let odd = HUGE + PAGE;
        assert_eq!(begin(4 * HUGE, odd, PAGE), 4 * HUGE + BEHIND_BEGIN);
        assert_eq!(begin(4 * HUGE + PAGE, odd, PAGE), 4 * HUGE + BEHIND_BEGIN);
        let behind = 4 * HUGE + BEHIND_BEGIN + PAGE;
        assert_eq!(begin(behind, odd, PAGE), behind);
        assert_eq!(begin(behind, HUGE, HUGE), 5 * HUGE);
        assert_eq!(begin(4 * HUGE, 8 * PAGE, PAGE), 4 * HUGE);
    }
}
