//! The placement of the upper half's memory: `mmap`, `mremap`, `brk`, `shmat`, and the unmapping calls that the gate must know of.
//!
//! Rules of this place: runs in the trap's handler.
//!
//! Memory without a requested address goes into the arena. Memory at a requested address is placed there unless something of the lower half is there
//! (`outside_ranges`). Code must lie where addresses belong to the upper half, since the filter recognizes system calls by their address.

mod arena;
mod details;
mod gaps;
mod outside_ranges;
mod ranges;
mod saved;
mod segments;
mod window_advice;

use core::ops::Range;

use stillpoint_wrappers::gate::{GATE_ADDRESS, GATE_BYTES, is_upper, is_upper_code};

use super::call::{Call, errno};
use super::device;
use crate::arch::PAGE;
use crate::arch::layout::{BREAK_END, BREAK_START, ISLANDS};
use crate::arch::short::LARGE_FLAGS;
use crate::arch::syscall::{failed, syscall3, syscall6};
use crate::ground::arriving;
use crate::ground::lock::Lock;
use arena::{Arena, WORTH_REUSING};
pub use details::{
    ADVICE_ON_PAGES, ADVICE_TO_OTHERS, MADV_GUARD_INSTALL, are_guarded, changed, changes, large,
    may_be_guarded, on_details,
};
pub use gaps::{
    on_bind, on_lock, on_mprotect, on_munmap, on_process_advice, on_remap_file_pages, on_seal,
    on_sync,
};
pub use outside_ranges::on_shmdt;
pub use saved::{restore, save};
pub use segments::on_shmat;
pub use window_advice::{on_advice, parts as held};

const HUGE: usize = 2 << 20;

static ARENA: Lock<Arena> = Lock::new(Arena::new());

const fn up(value: usize, to: usize) -> usize {
    value.wrapping_add(to - 1) & !(to - 1)
}

/// Returns the pages of a range, or `None` if it is empty or exceeds the last address.
fn pages(address: usize, bytes: usize) -> Option<Range<usize>> {
    let end = up(address.checked_add(bytes)?, PAGE);
    (address < end).then_some(address & !(PAGE - 1)..end)
}

/// Whether the whole range belongs to the upper half by address.
pub fn settled(range: &Range<usize>) -> bool {
    ranges::elsewhere(range.clone()).next().is_none() && !touches_gate(range)
}

/// Whether the range touches the gate region, which the process cannot do without.
pub fn touches_gate(range: &Range<usize>) -> bool {
    range.start < GATE_ADDRESS + GATE_BYTES && range.end > GATE_ADDRESS
}

/// `mmap` with every argument as the kernel takes it.
fn map(
    address: usize,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> isize {
    // SAFETY: every caller maps with MAP_FIXED_NOREPLACE, over what it has reserved, or what the application asked for in its own half.
    unsafe {
        syscall6(
            libc::SYS_mmap,
            [address, bytes, protection, flags, fd, offset],
        )
    }
}

/// Maps at exactly this address; returns `EEXIST` if it is not free.
fn map_free(
    address: usize,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> isize {
    let flags = flags & !(libc::MAP_FIXED as usize) | libc::MAP_FIXED_NOREPLACE as usize;
    let result = map(address, bytes, protection, flags, fd, offset);
    if failed(result) || result as usize == address {
        return result;
    }
    // A kernel that does not know the flag took the address as a hint.
    // SAFETY: this unmaps exactly what was just mapped, which nothing uses yet.
    unsafe { syscall3(libc::SYS_munmap, result as usize, bytes, 0) };
    errno(libc::EEXIST)
}

/// Returns the alignment of a mapping that does not ask for one. As in the kernel, a mapping of whole huge pages is aligned for them. Other large mappings lie
/// side by side: arrays that all begin at the start of a huge page compete for the same cache sets.
fn unasked(bytes: usize) -> usize {
    let whole = bytes >= HUGE && bytes.is_multiple_of(HUGE);
    if whole { HUGE } else { PAGE }
}

/// Returns the alignment of a new mapping. Stacks are not aligned for huge pages, which would make them grow.
fn alignment(bytes: usize, flags: usize) -> usize {
    if flags & libc::MAP_HUGETLB as usize != 0 {
        let shift = (flags >> libc::MAP_HUGE_SHIFT) & 63;
        return if shift == 0 { HUGE } else { 1 << shift };
    }
    let plain = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) as usize == 0;
    if plain && flags & libc::MAP_ANONYMOUS as usize != 0 {
        unasked(bytes)
    } else {
        PAGE
    }
}

/// Returns the bytes that a mapping takes: with huge pages, a multiple of their size.
fn whole(bytes: usize, flags: usize) -> usize {
    match flags & libc::MAP_HUGETLB as usize {
        0 => bytes,
        _ => up(bytes, alignment(bytes, flags)),
    }
}

/// Maps memory for the upper half, for the loader and for the trap.
pub fn mmap(
    address: usize,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> isize {
    let rest = [protection, flags, fd, offset];
    let (fixed, free) = (libc::MAP_FIXED as usize, libc::MAP_FIXED_NOREPLACE as usize);
    if flags & (fixed | free) != 0 {
        let replaces = flags & free != free;
        let aligned = |range: &Range<usize>| range.start == address;
        let Some(range) = pages(address, whole(bytes, flags)).filter(aligned) else {
            // The kernel reports the error; nothing is mapped.
            return map(address, bytes, protection, flags, fd, offset);
        };
        if !settled(&range) {
            return outside_ranges::map_at(range, replaces, rest);
        }
        return match replaces {
            true => map(address, bytes, protection, flags, fd, offset),
            false => map_free(address, bytes, protection, flags, fd, offset),
        };
    }
    if flags & libc::MAP_32BIT as usize != 0 {
        // The kernel chooses an address below 2 GiB, which belongs to the upper half.
        return map(address, bytes, protection, flags, fd, offset);
    }
    let hint = address & !(PAGE - 1);
    let unseen = protection & libc::PROT_EXEC as usize != 0 && !is_upper_code(hint);
    if hint >= PAGE * 16
        && !unseen
        && let Some(range) = pages(hint, whole(bytes, flags))
    {
        let result = match settled(&range) {
            true => map_free(hint, bytes, protection, flags, fd, offset),
            false => outside_ranges::map_at(range, false, rest),
        };
        if !failed(result) {
            return result;
        }
    }
    let result = ARENA.lock().place(bytes, alignment(bytes, flags), rest);
    if address == 0 && flags == LARGE_FLAGS && bytes >= WORTH_REUSING && !failed(result) {
        details::placed(bytes, result as usize);
    }
    if result == errno(libc::EINVAL) && flags & libc::MAP_SHARED as usize != 0 {
        return outside_ranges::map_anywhere(bytes, rest);
    }
    result
}

/// `mmap`.
pub fn on_mmap(call: &mut Call) -> isize {
    let [address, bytes, protection, flags, fd, offset] = call.arguments();
    device::look(address);
    let result = mmap(address, bytes, protection, flags, fd, offset);
    changed();
    result
}

/// Answers `mremap`: advice and locks move with the memory.
pub fn on_mremap(call: &mut Call) -> isize {
    let result = remap(call);
    if !failed(result)
        && let Some(range) = pages(result as usize, call.argument(2))
    {
        window_advice::is_new(range);
    }
    changed();
    result
}

/// Remaps; a mapping that has to move goes to the arena, or where the application wants it.
fn remap(call: &Call) -> isize {
    // Memory that is still to arrive would come to the old addresses.
    arriving::wait();
    let [old, old_bytes, new_bytes, flags, to, _] = call.arguments();
    let remap = |flags: i32, to: usize| {
        // SAFETY: the application asks for this, and `remapped` has found `old` to be its own, or only to be mapped a second time; `to` was chosen by it and
        // looked at, has been reserved in the arena, or is 0 and not used.
        unsafe {
            syscall6(
                libc::SYS_mremap,
                [old, old_bytes, new_bytes, flags as usize, to, 0],
            )
        }
    };
    let flags = flags as i32;
    if flags & libc::MREMAP_FIXED != 0 {
        return outside_ranges::remapped(call, |arena| match pages(to, new_bytes) {
            Some(range) if !settled(&range) => {
                outside_ranges::over(arena, &range, || remap(flags, to))
            }
            _ => remap(flags, to),
        });
    }
    outside_ranges::remapped(call, |arena| {
        if flags & libc::MREMAP_DONTUNMAP == 0 {
            // Resizes in place if possible.
            let result = remap(flags & !libc::MREMAP_MAYMOVE, 0);
            if result != errno(libc::ENOMEM) || flags & libc::MREMAP_MAYMOVE == 0 {
                return result;
            }
        } else if flags & libc::MREMAP_MAYMOVE == 0 {
            return remap(flags, 0);
        }
        let place = arena.reserve(new_bytes, unasked(new_bytes));
        if failed(place) {
            return place;
        }
        let result = remap(flags | libc::MREMAP_FIXED, place as usize);
        if failed(result) {
            // SAFETY: this unmaps exactly what was reserved above, which nothing uses.
            unsafe { syscall3(libc::SYS_munmap, place as usize, new_bytes, 0) };
        }
        result
    })
}

/// Answers `brk`, which is emulated for the upper half.
pub fn on_brk(call: &mut Call) -> isize {
    let wanted = call.argument(0);
    let mut arena = ARENA.lock();
    let end = arena.end;
    if !(BREAK_START..=BREAK_END).contains(&wanted) {
        return end as isize;
    }
    let (mapped, needed) = (up(end, PAGE), up(wanted, PAGE));
    if needed > mapped {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        if failed(map_free(
            mapped,
            needed - mapped,
            protection,
            flags,
            usize::MAX,
            0,
        )) {
            return end as isize;
        }
    } else if needed < mapped {
        // SAFETY: the application gives this part of its break back, which was mapped here.
        unsafe { syscall3(libc::SYS_munmap, needed, mapped - needed, 0) };
    }
    arena.end = wanted;
    changed();
    wanted as isize
}

/// Reserves `bytes` in the arena, for the caller to map over.
pub fn reserve(bytes: usize, alignment: usize) -> isize {
    ARENA.lock().reserve(bytes, alignment)
}

/// Maps a page of code for the upper half that `reaches` accepts as near enough.
pub fn island(reaches: impl Fn(usize) -> bool) -> Option<usize> {
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let beside_executable = || {
        let mut pages = ISLANDS.step_by(PAGE).filter(|at| reaches(*at));
        pages.find(|at| map_free(*at, PAGE, protection, flags, usize::MAX, 0) == *at as isize)
    };
    // Large mappings have an address range of their own, far from that of small ones.
    let in_room = |bytes: usize| {
        let rest = [protection, flags, usize::MAX, 0];
        let place = ARENA.lock().place(bytes, PAGE, rest);
        if failed(place) {
            return None;
        }
        let place = place as usize;
        if reaches(place) {
            return Some(place);
        }
        // SAFETY: this unmaps exactly what was just mapped, which nothing uses yet.
        unsafe { syscall3(libc::SYS_munmap, place, bytes, 0) };
        None
    };
    let island = beside_executable().or_else(|| [PAGE, HUGE].into_iter().find_map(in_room));
    changed();
    island
}

/// Runs an action while the arena cannot change.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = ARENA.lock();
    action()
}

/// Returns the parts of a range that belong to the upper half: by address, or because it has asked for them.
pub fn parts(range: Range<usize>) -> Vec<Range<usize>> {
    let arena = ARENA.lock();
    let mut parts: Vec<Range<usize>> = ranges::by_address(range.clone()).collect();
    parts.extend(arena.asked.parts(range));
    parts.sort_by_key(|part| part.start);
    parts.dedup_by(|next, last| {
        let touch = last.end == next.start;
        if touch {
            last.end = next.end;
        }
        touch
    });
    parts
}

/// Whether an address belongs to the upper half.
pub fn owns(address: usize) -> bool {
    is_upper(address) || {
        let arena = ARENA.lock();
        arena.asked.parts(address..address + 1).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE, PAGE, alignment};

    #[test]
    fn whole_huge_pages_are_aligned_and_other_arrays_lie_side_by_side() {
        let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        for (bytes, aligned) in [
            (PAGE, PAGE),
            (HUGE - PAGE, PAGE),
            (HUGE, HUGE),
            (HUGE + PAGE, PAGE),
            (8 * HUGE, HUGE),
        ] {
            assert_eq!(alignment(bytes, anonymous), aligned, "{bytes} bytes");
            assert_eq!(alignment(bytes, libc::MAP_PRIVATE as usize), PAGE);
            let stack = anonymous | libc::MAP_STACK as usize;
            assert_eq!(alignment(bytes, stack), PAGE, "a stack of {bytes} bytes");
            let huge = anonymous | libc::MAP_HUGETLB as usize;
            assert_eq!(alignment(bytes, huge), HUGE, "{bytes} bytes of huge pages");
        }
    }
}
