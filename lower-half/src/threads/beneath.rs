//! Handlers of the application that lie on top of code which a restart finds elsewhere: the kernel's vDSO, or the lower
//! half's own few instructions on the way into another handler. While one runs, its thread cannot stop, for the handler
//! could not return in another launch.
//!
//! Rules of this place: runs in signal handlers, on the application's stack, with either half's FS.

use core::sync::atomic::Ordering;

use stillpoint_wrappers::gate;

use super::registry::Thread;
use crate::arch::frame::{Frame, REG_RIP, REG_RSP};
use crate::arch::springboard;

/// Whether code at this address is there in every launch.
pub fn stays(rip: usize) -> bool {
    gate::is_upper(rip) || springboard::holds(rip)
}

/// A handler is about to run on top of `frame`. `true` if that one now keeps its thread from stopping: then it must be
/// taken back with [`left`].
pub fn entered(thread: Thread, frame: Frame) -> bool {
    let lowest = &thread.notes().beneath;
    let first = !stays(frame.register(REG_RIP)) && !blocks(thread, frame);
    if first {
        lowest.store(frame.address() as u64, Ordering::Relaxed);
    }
    first
}

/// The handler for which [`entered`] said `true` has returned.
pub fn left(thread: Thread) {
    thread.notes().beneath.store(0, Ordering::Relaxed);
}

/// Whether a handler of this thread, interrupted in `frame`, could not return in another launch.
pub fn blocks(thread: Thread, frame: Frame) -> bool {
    let beneath = thread.notes().beneath.load(Ordering::Relaxed) as usize;
    if beneath == 0 {
        return false;
    }
    // A handler that was left by a jump is still noted, but the stack is already above it.
    let (stack, now) = (frame.alternate_stack(), frame.register(REG_RSP));
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
