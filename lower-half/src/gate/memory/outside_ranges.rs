//! Memory that the application asks for at addresses that belong to neither half. It gets free addresses, as it would natively, and addresses that it has got
//! before, but never those of the lower half. Each such range is noted, because an image must hold it.
//!
//! Rules of this place: the lock on the arena is held from the check that an address is free to the note that it is taken, so the list always matches the
//! mappings.
//!
//! Code is refused there, because the filter would not recognize its system calls. Memory that grows downwards is refused too, because the gate would not see
//! it grow.

use core::ops::Range;

use super::arena::Arena;
use super::ranges::elsewhere;
use super::{ARENA, PAGE, gaps, map, map_free, pages, touches_gate, window_advice};
use crate::arch::syscall::{failed, syscall3, syscall4};
use crate::gate::call::{Call, errno};

fn unmap(range: Range<usize>) -> isize {
    // SAFETY: the range was mapped by the caller just before, or the list says that it is the application's.
    unsafe { syscall3(libc::SYS_munmap, range.start, range.len(), 0) }
}

/// Notes that a range is the application's. The list has a free entry: callers check that before they map.
fn note(arena: &mut Arena, range: &Range<usize>) {
    for part in elsewhere(range.clone()) {
        if arena.asked.insert(part.clone()).is_err() {
            // Two parts, but only one free entry: the part is unmapped, because no image would hold it.
            unmap(part);
        }
    }
}

/// Notes that a range is free.
fn forget(arena: &mut Arena, range: &Range<usize>) {
    for part in elsewhere(range.clone()) {
        // If a hole does not fit into the list, the whole range stays: an image leaves out unmapped memory anyway.
        let _ = arena.asked.remove(part);
    }
}

/// Answers `mmap` with a fixed address, or with a hint that is free.
pub fn map_at(range: Range<usize>, replaces: bool, rest: [usize; 4]) -> isize {
    let [protection, flags, fd, offset] = rest;
    if touches_gate(&range) || flags & libc::MAP_GROWSDOWN as usize != 0 {
        return errno(if replaces { libc::ENOMEM } else { libc::EEXIST });
    }
    if protection & libc::PROT_EXEC as usize != 0 {
        return errno(libc::EACCES);
    }
    let mut arena = ARENA.lock();
    if replaces {
        return over(&mut arena, &range, || {
            map(range.start, range.len(), protection, flags, fd, offset)
        });
    }
    if !arena.asked.has_room() {
        return errno(libc::ENOMEM);
    }
    let result = map_free(range.start, range.len(), protection, flags, fd, offset);
    if !failed(result) {
        note(&mut arena, &range);
    }
    result
}

/// Answers `mmap` of objects that only accept the kernel's choice of an address: the queues of an `io_uring`.
pub fn map_anywhere(bytes: usize, rest: [usize; 4]) -> isize {
    let [protection, flags, fd, offset] = rest;
    let mut arena = ARENA.lock();
    if protection & libc::PROT_EXEC as usize != 0 || !arena.asked.has_room() {
        return errno(libc::EINVAL);
    }
    let result = map(0, bytes, protection, flags, fd, offset);
    if !failed(result)
        && let Some(range) = pages(result as usize, bytes)
    {
        note(&mut arena, &range);
    }
    result
}

/// Has `action` map over a range that is the application's or free; returns ENOMEM if some part is neither.
pub fn over(arena: &mut Arena, range: &Range<usize>, action: impl FnOnce() -> isize) -> isize {
    if touches_gate(range) || !arena.asked.has_room() {
        return errno(libc::ENOMEM);
    }
    // Free parts are reserved first, so that the lower half does not take them in between.
    let mut held: [Range<usize>; GAPS] = [const { 0..0 }; GAPS];
    let mut count = 0;
    let mut result = 0;
    'parts: for part in elsewhere(range.clone()) {
        let mut rest = part;
        while let Some(gap) = arena.asked.gap(rest.clone()) {
            let (Some(place), false) = (held.get_mut(count), failed(hold(&gap))) else {
                result = errno(libc::ENOMEM);
                break 'parts;
            };
            *place = gap.clone();
            count += 1;
            rest.start = gap.end;
        }
    }
    if !failed(result) {
        result = action();
    }
    if failed(result) {
        held.into_iter().take(count).for_each(|gap| {
            unmap(gap);
        });
    } else {
        note(arena, range);
    }
    result
}

/// The number of free parts between the application's own that one request may have.
const GAPS: usize = 64;

fn hold(gap: &Range<usize>) -> isize {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let nothing = libc::PROT_NONE as usize;
    map_free(gap.start, gap.len(), nothing, flags, usize::MAX, 0)
}

/// Keeps the list correct over an `mremap`, which `action` makes.
pub fn remapped(call: &Call, action: impl FnOnce(&mut Arena) -> isize) -> isize {
    let [old, old_bytes, new_bytes, flags, ..] = call.arguments();
    let before = pages(old, old_bytes);
    let mut arena = ARENA.lock();
    // Without a length, a shared mapping is mapped a second time. The library of stubs has the real MPI's windows like that.
    let allowed = old_bytes == 0 && window_advice::by_stubs(call);
    let foreign = |old: Range<usize>| gaps::first(&arena, old).is_some();
    if !allowed && pages(old, old_bytes.max(1)).is_some_and(foreign) {
        return gaps::not_to_be_moved(call);
    }
    let result = action(&mut arena);
    if failed(result) {
        return result;
    }
    if flags as i32 & libc::MREMAP_DONTUNMAP == 0
        && let Some(before) = before
    {
        forget(&mut arena, &before);
    }
    if let Some(after) = pages(result as usize, new_bytes) {
        note(&mut arena, &after);
    }
    result
}

/// `shmat` at an address.
pub fn attach(range: Range<usize>, flags: usize, action: impl FnOnce() -> isize) -> isize {
    if flags & libc::SHM_EXEC as usize != 0 {
        return errno(libc::EACCES);
    }
    let mut arena = ARENA.lock();
    if flags & libc::SHM_REMAP as usize != 0 {
        return over(&mut arena, &range, action);
    }
    if touches_gate(&range) {
        return errno(libc::EINVAL);
    }
    if !arena.asked.has_room() {
        return errno(libc::ENOMEM);
    }
    let result = action();
    if !failed(result) {
        note(&mut arena, &range);
    }
    result
}

/// Unmaps the application's parts of a range.
pub fn unmap_parts(range: Range<usize>) -> isize {
    let mut arena = ARENA.lock();
    if !arena.asked.has_room() {
        return errno(libc::ENOMEM);
    }
    let mut rest = range;
    while !rest.is_empty() {
        let gap = gaps::first(&arena, rest.clone()).unwrap_or(rest.end..rest.end);
        let own = rest.start..gap.start;
        if !own.is_empty() {
            let result = unmap(own.clone());
            if failed(result) {
                return result;
            }
            forget(&mut arena, &own);
        }
        rest.start = gap.end;
    }
    0
}

/// Answers `shmdt` of addresses that belong to neither half.
pub fn on_shmdt(call: &mut Call) -> isize {
    let mut arena = ARENA.lock();
    let start = call.argument(0);
    if arena
        .asked
        .parts(start..start.saturating_add(1))
        .next()
        .is_none()
    {
        return errno(libc::EINVAL);
    }
    let result = call.make();
    if failed(result) {
        return result;
    }
    // The segment's length is not known any more: its pages are those that are no longer mapped.
    let mut page = start;
    while arena.asked.parts(page..page + PAGE).next().is_some() && !is_mapped(page) {
        forget(&mut arena, &(page..page + PAGE));
        page += PAGE;
    }
    result
}

fn is_mapped(page: usize) -> bool {
    let mut resident = 0u8;
    let place = &raw mut resident as usize;
    // SAFETY: the kernel writes one byte for one page, to a place on this stack.
    let result = unsafe { syscall4(libc::SYS_mincore, page, PAGE, place, 0) };
    result != errno(libc::ENOMEM)
}
