//! Handlers of the application on top of code that a restart places elsewhere: the kernel's vDSO, or the lower half's own few instructions on the way into
//! another handler or into a stop. Or on top of a stub's code, which may depend on this launch's MPI. While such a handler runs, its thread cannot stop,
//! because the handler could not return in another launch.
//!
//! The agent leaves such a thread alone for a longer time after each attempt: an attempt interrupts the call that it sleeps in, and a sleep that restarts at
//! every attempt would never end. It is asked again at once when the handler has returned.
//!
//! Rules of this place: runs in signal handlers, on the application's stack, with either half's FS.

use core::sync::atomic::Ordering;

use stillpoint_wrappers::gate::{self, UpperHooks};

use super::registry::Thread;
use crate::arch::frame::{BEHIND, Frame, PC, RESULT, SP};
use crate::arch::springboard::{self, SYSCALL, Standing};
use crate::arch::syscall::{failed, syscall3};

/// Whether a thread may stop where it stands in `frame`: the code is there in every launch, the code beneath it is known, and its next steps do not depend on
/// this launch.
pub fn stays(frame: Frame) -> bool {
    let rip = frame.register(PC);
    if gate::is_upper(rip) {
        return true;
    }
    let passing = match springboard::standing(rip) {
        Standing::Passes => true,
        Standing::Calls(piece) => piece.is_bound(),
        Standing::Called(piece) => piece.reads_result() && !failed(frame.register(RESULT) as isize),
        Standing::Elsewhere | Standing::Begins => {
            springboard::leads_to_handler(rip) || springboard::about_to_stop(rip)
        }
    };
    springboard::holds(rip) && !passing
}

/// Whether a thread is in the code of the stubs. One that is stopped there stands aside, before or behind an operation.
pub fn in_stubs_code(frame: Frame) -> bool {
    // SAFETY: the gate page is mapped; the pointer is null or that of the hooks, which the upper half never frees.
    let hooks =
        unsafe { (gate::page().hooks.load(Ordering::Acquire) as *const UpperHooks).as_ref() };
    let [start, end] = hooks
        .filter(|hooks| hooks.is_whole())
        .map_or([0; 2], |hooks| hooks.closed);
    (start..end).contains(&(frame.register(PC) as u64))
}

/// Whether a thread is in a stub's code. Its record may say there that it is outside of MPI: not yet inside, on a way that this launch has open, or just
/// returned with an operation that has not been noted. At a system call, the thread can be stopped: while a record says that, stubs make system calls only
/// where they stand aside.
pub fn in_stub(frame: Frame) -> bool {
    let here = frame.register(PC);
    in_stubs_code(frame)
        // SAFETY: the address lies in the code of the library of stubs, which is mapped; no stub ends at its end, so two bytes can be read.
        && unsafe { (here as *const [u8; SYSCALL.len()]).read_unaligned() } != SYSCALL
}

/// If the springboard is about to make a trapped call, moves the thread back to before the trap: the trap's preparations, such as a thread's id, belong to this
/// launch.
pub fn set_back(frame: Frame) {
    if springboard::standing(frame.register(PC)) == Standing::Begins {
        let behind = frame.register(BEHIND);
        frame.set_register(PC, behind.wrapping_sub(SYSCALL.len()));
        // Without the word that the piece got besides the number.
        frame.set_register(RESULT, frame.register(RESULT) as u32 as usize);
    }
}

/// Called before a handler runs on top of `frame`. Returns `true` if that handler now prevents its thread from stopping; then [`left`] must be called when it
/// returns.
pub fn entered(thread: Thread, frame: Frame) -> bool {
    let lowest = &thread.notes().beneath;
    set_back(frame);
    let first = (!stays(frame) || in_stub(frame)) && !blocks(thread, frame);
    if first {
        lowest.store(frame.address() as u64, Ordering::Relaxed);
    }
    first
}

/// Called when the handler for which [`entered`] returned `true` has returned.
pub fn left(thread: Thread) {
    let notes = thread.notes();
    notes.beneath.store(0, Ordering::Relaxed);
    notes.ask_pause.store(0, Ordering::Relaxed);
    notes.ask_after.store(0, Ordering::Relaxed);
}

/// Called when the thread could not stop: sets the time when it may be asked again.
pub fn put_off(thread: Thread) {
    let notes = thread.notes();
    let pause = (2 * notes.ask_pause.load(Ordering::Relaxed)).max(FIRST_PAUSE);
    notes.ask_pause.store(pause, Ordering::Relaxed);
    notes.ask_after.store(now() + pause, Ordering::Relaxed);
}

/// Whether it is too early to ask the thread to stop.
pub fn too_early(thread: Thread) -> bool {
    let after = thread.notes().ask_after.load(Ordering::Relaxed);
    after != 0 && now() < after
}

/// The first pause, in nanoseconds.
const FIRST_PAUSE: u64 = 5_000_000;

fn now() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes seconds and nanoseconds to two words, which live on this stack.
    unsafe {
        syscall3(
            libc::SYS_clock_gettime,
            libc::CLOCK_MONOTONIC as usize,
            time.as_mut_ptr() as usize,
            0,
        )
    };
    time[0] * 1_000_000_000 + time[1]
}

/// Whether a handler of this thread, interrupted in `frame`, could not return in another launch.
pub fn blocks(thread: Thread, frame: Frame) -> bool {
    let beneath = thread.notes().beneath.load(Ordering::Relaxed) as usize;
    if beneath == 0 {
        return false;
    }
    // A handler that was left by a jump is still noted, but the stack pointer is already above it.
    let (stack, now) = (frame.alternate_stack(), frame.register(SP));
    let standing = match (stack.contains(&beneath), stack.contains(&now)) {
        (true, false) => false,
        (false, true) => true,
        _ => now < beneath,
    };
    if !standing {
        left(thread);
    }
    standing
}
