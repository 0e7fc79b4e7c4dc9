//! Stacks of the lower half's own for its two signal handlers.
//!
//! The kernel puts the signal frame of a trap or a stop on the application's stack - on the alternate one, where the thread
//! has one, as a runtime with small stacks (Go's, say) demands of every handler - and both may be hardly longer than that frame. So no
//! handler does its work there: each thread has a stack for it here. Nothing of it is needed after a restart.
//!
//! Whoever works here with signals unblocked must have switched the alternate stack off first ([`aside`]): the kernel would
//! take it for unused, and put the next frame over the one that is there. The return from the handler switches it on again.
//!
//! Rules of this place: runs in signal handlers; no allocation but by `mmap`.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::registry::Thread;
use crate::arch::frame::Frame;
use crate::arch::layout::HANDLER_STACK_BYTES as BYTES;
use crate::arch::syscall::{failed, syscall3, syscall6};
use crate::arch::{PAGE, enter};

/// Bytes of the driver thread's while it is parked: the real MPI makes progress there, and calls the application's operators.
const PARK_BYTES: usize = 64 * 1024 * 1024;

/// Where the driver thread's begins; 0: it has not been needed yet.
static PARK: AtomicUsize = AtomicUsize::new(0);

/// Maps a stack with a page below it that faults; 0 where there is no memory for it. Where the application has all of its memory
/// locked (`mlockall`), this is not: it would be there in full at once.
fn map(bytes: usize) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let (none, all) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a mapping of its own.
    unsafe {
        let start = syscall6(
            libc::SYS_mmap,
            [0, bytes, none as usize, flags as usize, usize::MAX, 0],
        );
        if failed(start) {
            return 0;
        }
        let start = start as usize;
        syscall3(libc::SYS_munlock, start, bytes, 0);
        let stack = start + PAGE;
        if failed(syscall3(
            libc::SYS_mprotect,
            stack,
            bytes - PAGE,
            all as usize,
        )) {
            syscall3(libc::SYS_munmap, start, bytes, 0);
            return 0;
        }
        start
    }
}

/// Gives a place for a stack its memory, if it has none yet.
pub fn provide(place: &AtomicUsize) {
    if place.load(Ordering::Relaxed) == 0 {
        place.store(map(BYTES), Ordering::Relaxed);
    }
}

/// Runs `function` on the thread's own stack, all signals being blocked; on this one where it has none.
///
/// # Safety
/// Not while the thread is at work there already; `function` must return.
pub unsafe fn work(thread: Option<Thread>, function: unsafe extern "C" fn(usize), argument: usize) {
    let start = thread.map_or(0, |thread| thread.handler_stack().load(Ordering::Relaxed));
    // SAFETY: the caller's.
    unsafe { on(start, BYTES, function, argument) };
}

/// Runs `function` on a stack of the thread's own with signals unblocked, on top of the handler that stands in `frame`.
///
/// # Safety
/// As [`work`]; the handler must return through the frame.
pub unsafe fn aside(
    thread: Thread,
    frame: Frame,
    function: unsafe extern "C" fn(usize),
    argument: usize,
) {
    let (start, bytes) = if thread.is_driver() {
        if PARK.load(Ordering::Relaxed) == 0 {
            PARK.store(map(PARK_BYTES), Ordering::Relaxed);
        }
        (PARK.load(Ordering::Relaxed), PARK_BYTES)
    } else {
        (thread.handler_stack().load(Ordering::Relaxed), BYTES)
    };
    let mut argument = Aside {
        function,
        argument,
        switch_off: !frame.alternate_stack().is_empty(),
    };
    let there = &raw mut argument as usize;
    // SAFETY: the caller's.
    unsafe { on(start, bytes, begin, there) };
}

/// Lets the calling thread have no alternate stack. On another one.
pub fn switch_alternate_off() {
    let none = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: the kernel reads the structure.
    unsafe { syscall3(libc::SYS_sigaltstack, &raw const none as usize, 0, 0) };
}

struct Aside {
    function: unsafe extern "C" fn(usize),
    argument: usize,
    switch_off: bool,
}

unsafe extern "C" fn begin(aside: usize) {
    // SAFETY: `aside`'s own, on the stack that is left for this one.
    let aside = unsafe { &*(aside as *const Aside) };
    if aside.switch_off {
        switch_alternate_off();
    }
    // SAFETY: the caller's.
    unsafe { (aside.function)(aside.argument) };
}

unsafe fn on(start: usize, bytes: usize, function: unsafe extern "C" fn(usize), argument: usize) {
    // SAFETY: the caller's; the stack is nobody else's.
    unsafe {
        if start == 0 {
            function(argument);
        } else {
            enter::call_on(start + bytes, function, argument);
        }
    }
}
