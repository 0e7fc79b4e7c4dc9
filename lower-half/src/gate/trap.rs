//! The trap's handler: what becomes of a system call that the filter has stopped.
//!
//! Rules of this place: runs on the thread's stack for handlers (`threads::handler_stack`), but for the calls that make and end
//! threads and processes, with the application's FS, all signals blocked; so
//! system calls by hand only, no thread-local storage, no allocation, no panics. Answers go into the signal frame.
//!
//! A call that cannot block is made here. One that may block, or that waits for a signal, is made by the
//! springboard after this handler has returned, so that signals find it as they would find the original.

use super::{signals, table};
use crate::agent::starters;
use crate::arch::frame::{
    Frame, REG_R8, REG_R9, REG_R10, REG_R11, REG_RAX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI,
};
use crate::arch::springboard::Piece;
use crate::arch::syscall::syscall6;
use crate::threads::{self, Thread, handler_stack};

/// `siginfo.si_code` of a call stopped by a filter.
const SYS_SECCOMP: i32 = 1;

/// An error as system calls return it.
pub const fn errno(error: i32) -> isize {
    -(error as isize)
}

/// A trapped system call.
pub struct Call {
    frame: Frame,
    redirected: bool,
}

impl Call {
    pub fn frame(&self) -> Frame {
        self.frame
    }

    pub fn number(&self) -> i64 {
        self.frame.register(REG_RAX) as i64
    }

    pub fn arguments(&self) -> [usize; 6] {
        [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9]
            .map(|register| self.frame.register(register))
    }

    pub fn argument(&self, index: usize) -> usize {
        self.arguments().get(index).copied().unwrap_or(0)
    }

    /// Makes the call here, with the arguments that it was made with.
    pub fn make(&self) -> isize {
        self.make_with(self.arguments())
    }

    /// Makes the call here, with other arguments.
    pub fn make_with(&self, arguments: [usize; 6]) -> isize {
        // SAFETY: the application made this very call; what was changed in it was checked by whoever did.
        unsafe { syscall6(self.number(), arguments) }
    }

    /// Has the springboard make the call once this handler has returned; `word` is what the piece
    /// expects in r11.
    pub fn redirect(&mut self, piece: Piece, word: usize) -> isize {
        self.frame
            .set_register(REG_RCX, self.frame.register(REG_RIP));
        self.frame.set_register(REG_R11, word);
        self.frame.set_register(REG_RIP, piece.address());
        self.redirected = true;
        0
    }

    /// As [`Call::redirect`], the call being just what it was.
    pub fn redirect_plain(&mut self) -> isize {
        self.redirect(Piece::CallPlain, 0)
    }
}

/// The handler of SIGSYS.
///
/// # Safety
/// For the kernel to call.
pub unsafe extern "C" fn on_sigsys(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel's own arguments.
    let (frame, code) = unsafe { (Frame::new(context), (*info).si_code) };
    if code != SYS_SECCOMP {
        // SAFETY: the kernel's own argument.
        if !unsafe { threads::errand::run(info) || starters::ends(info) } {
            signals::deliver_here(signal, info, context);
        }
        return;
    }
    let mut call = Call {
        frame,
        redirected: false,
    };
    if table::makes_or_ends_threads(call.number()) {
        // What it leads to may begin on this stack, or not come back to it.
        return finish(&mut call);
    }
    // SAFETY: no other handler can come before this one is over; the call stays where it is.
    unsafe {
        handler_stack::work(Thread::current(), finish_there, &raw mut call as usize);
    }
}

unsafe extern "C" fn finish_there(call: usize) {
    // SAFETY: `on_sigsys` waits for this.
    finish(unsafe { &mut *(call as *mut Call) });
}

fn finish(call: &mut Call) {
    let result = answer(call);
    if !call.redirected {
        call.frame.set_register(REG_RAX, result as usize);
    }
}

fn answer(call: &mut Call) -> isize {
    match table::answers(call) {
        Some(answer) => answer(call),
        // The filter that a program inherits may trap more than this launch's: then the call is nobody's business.
        None => call.redirect_plain(),
    }
}
