//! The lower half's own stacks for its two signal handlers.
//!
//! The kernel puts the signal frame of a trap or a stop on the application's stack, or on the alternate one if the thread has one, as a runtime with small
//! stacks (Go's, for example) demands of every handler. Both may be hardly longer than that frame. So handlers do their work on a stack of the thread's own
//! here, which a restart does not need.
//!
//! Code that runs here with signals unblocked must first switch the alternate stack off ([`aside`]): otherwise the kernel takes that stack for unused, and puts
//! the next frame over the existing one. The return from the handler switches it on again.
//!
//! Rules of this place: runs in signal handlers; allocates only by `mmap`.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::registry::Thread;
use crate::arch::frame::Frame;
use crate::arch::layout::HANDLER_STACK_BYTES as BYTES;
use crate::arch::syscall::{failed, syscall3, syscall6};
use crate::arch::{PAGE, enter};

/// The size of the driver thread's stack while it is parked: the real MPI makes progress there, and calls the application's operators.
const PARK_BYTES: usize = 64 * 1024 * 1024;

/// The address of the driver thread's stack; 0: it has not been needed yet.
static PARK: AtomicUsize = AtomicUsize::new(0);

/// Maps a stack with an inaccessible page below it; returns 0 if there is no memory for it. If the application has all of its memory locked (`mlockall`), this
/// stack is not locked: it would occupy all of its memory at once.
fn map(bytes: usize) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let (none, all) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: the kernel chooses a free address for this memory, and only this function uses it before it returns.
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

/// Maps a stack, unless this place has one already.
pub fn provide(place: &AtomicUsize) {
    if place.load(Ordering::Relaxed) == 0 {
        place.store(map(BYTES), Ordering::Relaxed);
    }
}

/// Runs `function` on the thread's own stack, with all signals blocked; on the current stack if the thread has none.
///
/// # Safety
/// The thread must not be working there already; `function` must return.
pub unsafe fn work(thread: Option<Thread>, function: unsafe extern "C" fn(usize), argument: usize) {
    let start = thread.map_or(0, |thread| thread.handler_stack().load(Ordering::Relaxed));
    // SAFETY: the caller says that the thread does not work on this stack already, which has BYTES bytes, and that `function` returns.
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
    // SAFETY: the caller says that the thread does not work on this stack already, which has `bytes` bytes; `begin` returns as its `function` does, and `there`
    // lives until then.
    unsafe { on(start, bytes, begin, there) };
}

/// Switches the calling thread's alternate stack off. Must run on another stack.
pub fn switch_alternate_off() {
    let none = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: the kernel reads the structure, which lives on this stack.
    unsafe { syscall3(libc::SYS_sigaltstack, &raw const none as usize, 0, 0) };
}

struct Aside {
    function: unsafe extern "C" fn(usize),
    argument: usize,
    switch_off: bool,
}

unsafe extern "C" fn begin(aside: usize) {
    // SAFETY: `aside` passes the address of a structure on its own stack, which it keeps until this returns.
    let aside = unsafe { &*(aside as *const Aside) };
    if aside.switch_off {
        switch_alternate_off();
    }
    // SAFETY: the caller of `aside` gave the function and its argument.
    unsafe { (aside.function)(aside.argument) };
}

/// # Safety
/// `start` must be 0, or the start of a stack of `bytes` bytes that nothing else uses; `function` must return.
unsafe fn on(start: usize, bytes: usize, function: unsafe extern "C" fn(usize), argument: usize) {
    // SAFETY: the caller gives a stack that nothing else uses, or 0 for the current one, and a function that returns.
    unsafe {
        if start == 0 {
            function(argument);
        } else {
            enter::call_on(start + bytes, function, argument);
        }
    }
}
