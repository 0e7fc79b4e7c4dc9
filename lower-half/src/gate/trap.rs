//! The trap's handler: answers a system call that the filter has stopped.
//!
//! Rules of this place: runs on the thread's stack for handlers (`threads::handler_stack`), except for calls that make and end threads and processes; with the
//! application's FS and all signals blocked. So it makes system calls directly and has no thread-local storage, no allocation and no panics. Answers go into
//! the signal frame.
//!
//! A call that cannot block is made here. One that may block, or that waits for a signal, is made by the
//! springboard after this handler has returned, so that signals find it as they would find the original.

use super::call::Call;
use super::{errand, signals, sites, table};
use crate::arch::frame::{Frame, PC};
use crate::ground::starters;
use crate::threads::{Thread, handler_stack, interrupted};

/// `siginfo.si_code` of a call stopped by a filter.
const SYS_SECCOMP: i32 = 1;

/// The handler of SIGSYS.
///
/// # Safety
/// For the kernel to call.
pub unsafe extern "C" fn on_sigsys(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel passes this handler structures that stay until the handler returns.
    let (frame, code) = unsafe { (Frame::new(context), (*info).si_code) };
    if code != SYS_SECCOMP {
        // SAFETY: the kernel passes this handler a structure that stays until the handler returns.
        if unsafe { errand::run(info) || starters::ends(info) } {
            if let Some(thread) = Thread::current() {
                interrupted::make_again(thread, frame);
            }
        } else {
            signals::deliver_here(signal, info, context);
        }
        return;
    }
    let mut call = Call::of(frame);
    if table::makes_or_ends_threads(call.number()) {
        // The call may begin a thread on this stack, or not return to it.
        return finish(&mut call);
    }
    // SAFETY: all signals are blocked, so no other handler is at work on that stack; `finish_there` returns, and `call` stays here until then.
    unsafe {
        handler_stack::work(Thread::current(), finish_there, &raw mut call as usize);
    }
}

unsafe extern "C" fn finish_there(call: usize) {
    // SAFETY: `on_sigsys` passes the address of its call, and waits for this function.
    let call = unsafe { &mut *(call as *mut Call) };
    let (number, behind) = (call.number(), call.frame().register(PC));
    finish(call);
    sites::trapped(number, behind);
}

/// Answers a call, or has it made elsewhere.
pub fn finish(call: &mut Call) {
    let result = answer(call);
    call.answer(result);
}

fn answer(call: &mut Call) -> isize {
    match table::answers(call) {
        Some(answer) => answer(call),
        // A program may inherit a filter that traps more than this launch's; such a call is just made.
        None => call.redirect_plain(),
    }
}
