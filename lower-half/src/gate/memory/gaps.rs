//! Calls about ranges of addresses of which some part is not the application's. For the application nothing is mapped there, whatever the lower half has. So such
//! a call is made for the application's parts alone, and otherwise answered as the kernel answers where nothing is mapped.
//!
//! Rules of this place: runs in the trap's handler. The lock on the arena is not held while a call is made that may wait for pages.

use core::ops::Range;

use super::arena::Arena;
use super::ranges::elsewhere;
use super::{ARENA, PAGE, details, pages};
use crate::arch::syscall::failed;
use crate::gate::call::{Call, errno};
use crate::gate::holdings::{self, Holding};
use crate::gate::user;

/// The kernel's way with a call if nothing is mapped in some part of its range.
#[derive(Clone, Copy)]
enum Gap {
    /// It goes as far as that, and then fails.
    Ends(i32),
    /// It goes on behind that, and fails when all is done.
    Fails(i32),
    /// It does nothing but fail.
    Forbids(i32),
    /// It goes on behind that.
    IsFine,
}

/// Returns the first part of a range that is not the application's.
pub fn first(arena: &Arena, range: Range<usize>) -> Option<Range<usize>> {
    elsewhere(range).find_map(|part| arena.asked.gap(part))
}

/// Makes a call about the application's parts of a range, whose address and length are its first two arguments.
fn make_for(call: &Call, range: Range<usize>, gap: Gap) -> isize {
    let [_, _, rest @ ..] = call.arguments();
    let make = |part: Range<usize>| {
        let [third, fourth, fifth, sixth] = rest;
        call.make_with([part.start, part.len(), third, fourth, fifth, sixth])
    };
    let after = |at: &Range<usize>| first(&ARENA.lock(), at.clone());
    let Some(mut next) = after(&range) else {
        return call.make();
    };
    // Other arguments may be wrong too, which the kernel finds out first.
    let checked = make(range.start..range.start);
    if failed(checked) {
        return checked;
    }
    if let Gap::Forbids(error) = gap {
        return errno(error);
    }
    let mut at = range.start;
    while at < range.end {
        if at < next.start {
            let result = make(at..next.start);
            let goes_on = matches!(gap, Gap::Fails(error) if result == errno(error));
            if failed(result) && !goes_on {
                return result;
            }
        }
        if let Gap::Ends(error) = gap {
            return errno(error);
        }
        at = next.end;
        next = after(&(at..range.end)).unwrap_or(range.end..range.end);
    }
    match gap {
        Gap::Fails(error) => errno(error),
        _ => 0,
    }
}

/// The same for a call that takes only whole pages: for another address the kernel reports the error.
fn make(call: &Call, gap: Gap) -> isize {
    let [address, bytes, ..] = call.arguments();
    match pages(address, bytes).filter(|range| range.start == address) {
        Some(range) => make_for(call, range, gap),
        None => call.make(),
    }
}

/// Answers `munmap`.
pub fn on_munmap(call: &mut Call) -> isize {
    let [address, bytes, ..] = call.arguments();
    let Some(range) = pages(address, bytes).filter(|range| range.start == address) else {
        return call.make();
    };
    if super::settled(&range) {
        return call.make();
    }
    super::outside_ranges::unmap_parts(range)
}

/// Answers `mprotect` and `pkey_mprotect`: there is no code at addresses that belong to neither half.
pub fn on_mprotect(call: &mut Call) -> isize {
    let [address, bytes, protection, ..] = call.arguments();
    let asked = |range: Range<usize>| ARENA.lock().asked.parts(range).next().is_some();
    if protection & libc::PROT_EXEC as usize != 0 && pages(address, bytes).is_some_and(asked) {
        return errno(libc::EACCES);
    }
    make(call, Gap::Ends(libc::ENOMEM))
}

/// Answers `madvise`.
pub fn advise(call: &mut Call) -> isize {
    details::counted(call, |call| make(call, Gap::Fails(libc::ENOMEM)))
}

/// Answers `process_madvise` with advice that can only be given to the process itself.
pub fn on_process_advice(call: &mut Call) -> isize {
    let [process, list, count, rest @ ..] = call.arguments();
    let place = |index: usize| list.wrapping_add(index * size_of::<libc::iovec>());
    let is_foreign = |index: usize| {
        let part = user::read::<[usize; 2]>(place(index)).ok();
        let range = part.and_then(|[address, bytes]| pages(address, bytes));
        range.is_some_and(|range| first(&ARENA.lock(), range).is_some())
    };
    details::counted(call, |call| {
        if !(0..count.min(libc::UIO_MAXIOV as usize)).any(is_foreign) {
            return call.make();
        }
        let [advice, flags, last] = rest;
        let checked = call.make_with([process, list, 0, advice, flags, last]);
        match failed(checked) {
            true => checked,
            false => errno(libc::ENOMEM),
        }
    })
}

/// Answers `mlock`, `mlock2` and `munlock`, which take parts of pages too.
pub fn on_lock(call: &mut Call) -> isize {
    let [address, bytes, ..] = call.arguments();
    details::counted(call, |call| match pages(address, bytes) {
        Some(range) => make_for(call, range, Gap::Ends(libc::ENOMEM)),
        None => call.make(),
    })
}

/// Answers `msync`.
pub fn on_sync(call: &mut Call) -> isize {
    make(call, Gap::Fails(libc::ENOMEM))
}

/// Answers `mbind`: only the default policy may be given to a range with gaps.
pub fn on_bind(call: &mut Call) -> isize {
    let gap = match call.argument(2) as i32 {
        libc::MPOL_DEFAULT => Gap::IsFine,
        _ => Gap::Forbids(libc::EFAULT),
    };
    make(call, gap)
}

/// Answers `remap_file_pages`.
pub fn on_remap_file_pages(call: &mut Call) -> isize {
    let [address, bytes, ..] = call.arguments();
    let foreign = |range: Range<usize>| first(&ARENA.lock(), range).is_some();
    match pages(address & !(PAGE - 1), bytes).is_some_and(foreign) {
        true => errno(libc::EINVAL),
        false => call.make(),
    }
}

/// Answers `mseal`.
pub fn on_seal(call: &mut Call) -> isize {
    let [address, bytes, ..] = call.arguments();
    let foreign = |range: Range<usize>| first(&ARENA.lock(), range).is_some();
    match pages(address, bytes).is_some_and(foreign) {
        true => make(call, Gap::Forbids(libc::ENOMEM)),
        false => holdings::held(call, Holding::Seals),
    }
}

/// Returns the error of an `mremap` of memory that is not the application's.
pub fn not_to_be_moved(call: &Call) -> isize {
    let [old, _, new_bytes, flags, ..] = call.arguments();
    let known = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let (flags, moves) = (flags as i32, libc::MREMAP_MAYMOVE);
    let sound = flags & !known == 0 && (flags & known == 0 || flags & moves != 0);
    match sound && old.is_multiple_of(PAGE) && new_bytes != 0 {
        true => errno(libc::EFAULT),
        false => errno(libc::EINVAL),
    }
}
