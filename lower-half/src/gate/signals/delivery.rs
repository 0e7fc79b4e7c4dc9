//! The way into a handler of the application, and back: the trampoline's two halves.

use super::{actions, below, bit, masks, stop_signal};
use crate::arch::frame::Frame;
use crate::arch::layout::{SLOTS, Slot};
use crate::arch::{registers, short, syscall};
use crate::gate::{descriptors, senders};
use crate::threads::registry::Thread;
use crate::threads::{beneath, interrupted};

/// The result of [`enter`] for the trampoline.
#[repr(C)]
pub struct Entered {
    /// The application's handler; 0: none, return.
    handler: usize,
    /// For [`leave`]: the FS to restore after the handler (0: unchanged), [`ENTERED`] and [`ON_TOP`].
    way_back: u64,
}

impl Entered {
    const NONE: Entered = Entered {
        handler: 0,
        way_back: 0,
    };
}

/// A flag in `way_back`: the handler interrupts code that a restart places elsewhere. (Every FS is a multiple of 4.)
const ON_TOP: u64 = 1;
/// A flag in `way_back`: a handler runs at all.
const ENTERED: u64 = 2;

/// Called by the trampoline before the application's handler: finds the handler, and sets the upper FS.
unsafe extern "C" fn enter(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) -> Entered {
    let Some(thread) = Thread::current() else {
        // SAFETY: the trampoline passes the kernel's own arguments, which stay until the handler returns.
        unsafe { below::came(signal, info, Frame::new(context)) };
        return Entered::NONE;
    };
    // SAFETY: the trampoline passes the kernel's own structure, which stays until the handler returns.
    let frame = unsafe { Frame::new(context) };
    let Some(action) = actions::take(signal) else {
        interrupted::make_again(thread, frame);
        return Entered::NONE;
    };
    senders::virtualise(info);
    short::settle(frame);
    interrupted::by_handler(frame, signal, action.restarts());
    masks::entered(thread, frame, action.mask);
    // The thread may be stopped in the handler, which returns to this frame.
    descriptors::note_behind(frame);
    let mut way_back = ENTERED;
    if beneath::entered(thread, frame) {
        way_back |= ON_TOP;
    }
    let fs = registers::fs();
    if fs != 0 && fs == thread.fs_lower() {
        way_back |= fs;
        // SAFETY: the thread was in the lower half, and its upper thread area was noted when it went there; the application's handler, which runs next, belongs
        // to that area.
        unsafe { registers::set_fs(thread.fs_upper()) };
    }
    Entered {
        handler: action.handler,
        way_back,
    }
}

/// Called by the trampoline after the application's handler.
unsafe extern "C" fn leave(way_back: u64, context: *mut libc::ucontext_t) {
    if let Some(thread) = Thread::current().filter(|_| way_back & ENTERED != 0) {
        // SAFETY: the trampoline passes the kernel's own structure, which stays until the handler returns.
        masks::left(thread, unsafe { Frame::new(context) });
        if way_back & ON_TOP != 0 {
            beneath::left(thread);
        }
    }
    let fs = way_back & !(ON_TOP | ENTERED);
    if fs != 0 {
        // SAFETY: this is the area that `enter` found in place; the lower half, which it belongs to, runs next.
        unsafe { registers::set_fs(fs) };
    }
}

/// Applies the application's action to one of our signals that another sender has sent.
pub fn deliver_here(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let action = actions::of(signal);
    if action.handles() {
        // SAFETY: the application says that this is a handler, and the arguments are the kernel's. `enter` sets the FS that belongs to the handler, and `leave`
        // puts back the one before.
        unsafe {
            let entered = enter(signal, info, context);
            if entered.handler != 0 {
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t) =
                    core::mem::transmute(entered.handler);
                handler(signal, info, context);
            }
            leave(entered.way_back, context);
        }
    } else if action.is_default() {
        // The default action of both ends the process.
        actions::reset_in_kernel(signal);
        // SAFETY: the caller is a handler and passes the kernel's own structure, which stays until the handler returns.
        let frame = unsafe { Frame::new(context) };
        frame.set_mask(frame.mask() & !bit(signal));
        syscall::tgkill(syscall::getpid(), syscall::gettid(), signal);
    }
}

/// Fills the springboard's words. Part of filling the gate region.
pub fn fill_slots() {
    let slots = SLOTS as *mut u64;
    // SAFETY: the gate region is mapped and writable while it is being filled, and each word lies in it.
    unsafe {
        slots
            .add(Slot::EnterHandler as usize)
            .write(enter as *const () as u64);
        slots
            .add(Slot::LeaveHandler as usize)
            .write(leave as *const () as u64);
        slots
            .add(Slot::StopSignal as usize)
            .write(stop_signal() as u64);
    }
    actions::tell_short_way();
}
