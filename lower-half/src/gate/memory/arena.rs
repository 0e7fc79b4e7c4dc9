//! The place of memory without a requested address. Small and large mappings have address ranges of their own, which are searched next-fit. Each address is
//! tried with MAP_FIXED_NOREPLACE: only the kernel knows the free ones, since `munmap` is not trapped there.

use core::ops::Range;

use super::ranges::Ranges;
use super::{HUGE, PAGE, map_free, up};
use crate::arch::layout::{BREAK_START, LARGE, MORE_CODE, MORE_LARGE, MORE_SMALL, SMALL};
use crate::arch::syscall::failed;
use crate::gate::call::errno;

/// Mappings from this size on are first tried at the last place of a mapping of about that size, which may be free again.
pub const WORTH_REUSING: usize = 1 << 20;
/// The distance from the start of a page table at which a large mapping begins if it does not consist of whole huge pages. When it is unmapped, the kernel
/// flushes the TLB page by page, counted from that start, for up to 33 pages (`tlb_single_page_flush_ceiling`). Beyond that it flushes the whole TLB, which
/// takes 1.3 us less than one page.
const BEHIND_BEGIN: usize = 64 * PAGE;
/// Attempts to find a free address before a range counts as full.
const ATTEMPTS: usize = 1 << 18;
/// Files that are larger are not a program's code.
const MOST_CODE: usize = 1 << 36;

/// An address range, and the address at which the search in it continues.
pub struct AddressRange {
    pub place: Range<usize>,
    pub next: usize,
}

impl AddressRange {
    const fn new(place: Range<usize>) -> AddressRange {
        let next = place.start;
        AddressRange { place, next }
    }

    /// Maps at the next free address; returns ENOMEM if there is none.
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

/// Returns the first suitable address for a mapping from `from` on.
fn begin(from: usize, span: usize, alignment: usize) -> usize {
    let at = up(from, alignment);
    let table = at & !(HUGE - 1);
    match span >= HUGE && alignment < HUGE && at - table < BEHIND_BEGIN {
        true => table + BEHIND_BEGIN,
        false => at,
    }
}

/// Maps code at addresses from which calls are seen (`gate::CODE_END`): in the first range, or in one of its own.
fn place_code(
    rooms: &mut [AddressRange; 2],
    preferred: usize,
    bytes: usize,
    alignment: usize,
    rest: [usize; 4],
) -> isize {
    let [first, _] = rooms;
    let mut more = AddressRange::new(MORE_CODE);
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
    /// The address ranges of small and of large mappings; each has a second range for when the first is full.
    pub rooms: [[AddressRange; 2]; 2],
    /// The index of the range that had a free address last, for small and for large mappings.
    preferred: [usize; 2],
    /// Last place of a mapping by the size's logarithm.
    last: [usize; 64],
    /// The program break.
    pub end: usize,
    /// The ranges that the application has asked for at addresses that belong to neither half.
    pub asked: Ranges,
}

impl Arena {
    pub const fn new() -> Arena {
        Arena {
            rooms: [
                [AddressRange::new(SMALL), AddressRange::new(MORE_SMALL)],
                [AddressRange::new(LARGE), AddressRange::new(MORE_LARGE)],
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
            // If there is no place for a large mapping, there may still be one for smaller mappings.
            too_large = span > most / 64;
        }
        result
    }

    /// Whether all of it lies in one range.
    fn holds(&self, start: usize, span: usize) -> bool {
        let mut rooms = self.rooms.iter().flatten();
        rooms.any(|room| room.place.start <= start && start + span <= room.place.end)
    }

    /// Reserves `bytes` with an inaccessible mapping.
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
