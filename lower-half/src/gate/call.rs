//! A system call that the filter has stopped: its number and arguments, and the ways to make it.
//!
//! Rules of this place: those of `gate::trap`.

use crate::arch::frame::{ARGUMENTS, BEHIND, Frame, PC, RESULT, WORD};
use crate::arch::springboard::{Piece, SYSCALL};
use crate::arch::syscall::syscall6;

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
    /// The call that the frame of a SIGSYS holds.
    pub fn of(frame: Frame) -> Call {
        Call {
            frame,
            redirected: false,
        }
    }

    /// Leaves the answer in the frame, unless the call is made elsewhere.
    pub fn answer(&mut self, result: isize) {
        if !self.redirected {
            self.frame.set_register(RESULT, result as usize);
        }
    }

    pub fn frame(&self) -> Frame {
        self.frame
    }

    pub fn number(&self) -> i64 {
        self.frame.register(RESULT) as i64
    }

    pub fn arguments(&self) -> [usize; 6] {
        ARGUMENTS.map(|register| self.frame.register(register))
    }

    pub fn argument(&self, index: usize) -> usize {
        self.arguments().get(index).copied().unwrap_or(0)
    }

    /// Makes the call here, with its own arguments.
    pub fn make(&self) -> isize {
        self.make_with(self.arguments())
    }

    /// Makes the call here, with other arguments.
    pub fn make_with(&self, arguments: [usize; 6]) -> isize {
        // SAFETY: the application made this very call about its own process; a caller that passes other arguments has checked them.
        unsafe { syscall6(self.number(), arguments) }
    }

    /// Has the springboard make the call once this handler has returned; `word` is the value that the piece expects in r11.
    pub fn redirect(&mut self, piece: Piece, word: usize) -> isize {
        self.frame.set_register(BEHIND, self.frame.register(PC));
        self.frame.set_register(WORD, word);
        self.frame.set_register(PC, piece.address());
        self.redirected = true;
        0
    }

    /// As [`Call::redirect`], to a piece that notes when the call's wait is over (`threads::deadlines`).
    pub fn redirect_until(&mut self, piece: Piece, word: usize, end: u32) -> isize {
        let number = self.frame.register(RESULT);
        self.frame
            .set_register(RESULT, number | (end as usize) << 32);
        self.redirect(piece, word)
    }

    /// Has the application make the call once more, after this handler has returned and a pending stop has stopped the thread.
    pub fn again(&mut self) {
        let made = self.frame.register(PC) - SYSCALL.len();
        self.frame.set_register(PC, made);
        self.redirected = true;
    }

    /// As [`Call::redirect`], without changing the call.
    pub fn redirect_plain(&mut self) -> isize {
        self.redirect(Piece::CallPlain, 0)
    }
}
