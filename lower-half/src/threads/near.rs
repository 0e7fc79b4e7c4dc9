//! Threads that call the real MPI without a switch of FS.
//!
//! FS leads to two things: the thread control block of a libc above it, and the static thread-local storage of a program and its libraries below it. Both
//! halves' would be at the same places. But this executable's own thread-local storage, which comes first, is enlarged by [`SPACE`] unused bytes, so that its
//! libraries' storage lies farther down, and the upper half's library keeps a [`Room`] that covers those places. The room is filled once, from the thread's
//! area of the lower half. The executable's own storage is not there: its code uses none on the ways that come near.
//!
//! The control block remains common. Two halves with the same release of glibc agree on its layout. The lower half uses the current block if it does not matter
//! whose it is: for its own address and the thread's number as the owner of a lock, and for the stack protector's value. Other functions switch to the thread's
//! own area (`own_area`). The flag for a process with several threads is set, as in the lower half's block.
//!
//! A library that is loaded at launch, as MPICH is, has its storage elsewhere, and gets it from `__tls_get_addr`, which is one of these functions. A library
//! that needs static storage after the first thread has come near would find none of it here; the libraries that MPI loads at its start come before that.
//!
//! Only frequent calls come near: those for messages, their completion, and collective operations.

use core::cell::Cell;
use core::ffi::{CStr, c_char};
use std::ops::Range;

use stillpoint_wrappers::gate::{Reach, Room};

use super::own_area;
use super::registry::{self, Thread};

/// The size of the range below FS that libraries of the lower half leave free.
const SPACE: usize = 4096;

thread_local! {
    static SPACER: Cell<[u8; SPACE]> = const { Cell::new([0; SPACE]) };
}

/// `header.multiple_threads` of glibc's thread control block on x86-64.
const MULTIPLE_THREADS: u64 = 0x18;
/// The farthest distance below FS at which static thread-local storage is looked for.
const FARTHEST: u64 = 1 << 20;

/// Implements `Services::come_near`, with the lower FS.
///
/// # Safety
/// `room` must be the calling thread's, which has a record with both areas in it; `room.libc` must lead to a string that ends in NUL.
pub unsafe extern "C" fn come_near(room: *const Room) {
    let Some(thread) = Thread::current() else {
        return;
    };
    // Makes its allocator's cache now, because both views of the storage share it.
    drop(std::hint::black_box(Box::new(0u64)));
    SPACER.with(|spacer| {
        std::hint::black_box(spacer.as_ptr());
    });
    // SAFETY: the caller gives the calling thread's room, which can be read.
    let reach = unsafe { fill(thread, &*room) };
    thread.set_reach(reach);
}

/// # Safety
/// As [`come_near`].
unsafe fn fill(thread: Thread, room: &Room) -> Reach {
    let (lower, upper) = (thread.fs_lower(), thread.fs_upper());
    let Some(storage) = static_storage(lower) else {
        return Reach::Far;
    };
    let there = |at: u64| at.wrapping_sub(lower).wrapping_add(upper);
    let (start, end) = (there(storage.start), there(storage.end));
    // SAFETY: the caller gives a room whose `libc` leads to a string that ends in NUL.
    let same_libc = unsafe { same_libc(room.libc as *const c_char) };
    let fits = room.start <= start && end <= room.start.wrapping_add(room.bytes);
    let shared = registry::each().any(|other| other != thread && other.fs_upper() == upper);
    if !same_libc || !fits || shared || !own_area::found_first() {
        return Reach::Far;
    }
    // SAFETY: the storage is this thread's, and the upper half keeps the room for this purpose; they are two areas, and the room covers what is written
    // (`fits`).
    unsafe {
        core::ptr::copy_nonoverlapping(
            storage.start as *const u8,
            start as *mut u8,
            (storage.end - storage.start) as usize,
        );
        ((upper + MULTIPLE_THREADS) as *mut u32).write_volatile(1);
    }
    Reach::Near
}

/// # Safety
/// `theirs` must lead to a string that ends in NUL.
unsafe fn same_libc(theirs: *const c_char) -> bool {
    // SAFETY: the caller gives a string that ends in NUL; libc's own is constant.
    unsafe { CStr::from_ptr(theirs) == CStr::from_ptr(libc::gnu_get_libc_version()) }
}

/// The libraries' static thread-local storage of the calling thread, whose FS is `fs`.
fn static_storage(fs: u64) -> Option<Range<u64>> {
    struct Found {
        fs: u64,
        storage: Option<Range<u64>>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the linker gives a structure that is alive during this call, with as many headers as it says; `found` is the caller's, who waits.
        unsafe {
            let (info, found) = (&*info, &mut *found.cast::<Found>());
            let start = info.dlpi_tls_data as u64;
            // The executable comes first, with number 1.
            if info.dlpi_tls_modid <= 1
                || start == 0
                || start >= found.fs
                || found.fs - start > FARTHEST
            {
                return 0;
            }
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            let bytes = headers
                .iter()
                .find(|header| header.p_type == libc::PT_TLS)
                .map_or(0, |header| header.p_memsz);
            let all = found.storage.get_or_insert(start..start + bytes);
            *all = all.start.min(start)..all.end.max(start + bytes);
        }
        0
    }
    let mut found = Found { fs, storage: None };
    // SAFETY: `look` takes the structure that it is given here, which lives on this stack until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found.storage
}
