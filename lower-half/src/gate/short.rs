//! The short way of trapped calls (`arch::short`): its entry in the lower half, and whether it is open.
//!
//! Rules of this place: those of `gate::trap`. Its frames have no vector state and no alternate stack: calls whose answers need them do not come this way
//! (`Class::needs_frame`).

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

use super::call::Call;
use super::short_switch::word;
use super::{memory, table, trap};
use crate::arch::frame::{ARGUMENTS, BEHIND, Frame, PC, RESULT, WORD};
use crate::arch::layout::Slot;
use crate::arch::short::{self, Kept, Large, NUMBERS};
use crate::arch::springboard::Piece;

/// Calls that go this way from the C library's `syscall`, a bit each. `close` does not: some steps of the way do not keep its number.
static TAKEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];

/// Whether this call goes this way from the C library's `syscall`.
pub fn takes(number: i64) -> bool {
    (0..NUMBERS as i64).contains(&number) && number != libc::SYS_close && table::goes_short(number)
}

/// Fills the short way's words. Part of filling the gate region.
pub fn fill_slots() {
    for number in (0..NUMBERS).filter(|&number| takes(number as i64)) {
        TAKEN[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
    }
    let words = [
        (Slot::ShortOff, u64::from(!short::possible())),
        (Slot::ShortAnswer, answer as *const () as u64),
        (Slot::ShortLarge, memory::large() as *const Large as u64),
        (Slot::ShortNumbers, TAKEN.as_ptr() as u64),
        (Slot::ShortPlain, Piece::CallPlain.address() as u64),
        (Slot::ShortNoting, Piece::CallNoting.address() as u64),
        (Slot::ShortClose, Piece::CallClose.address() as u64),
    ];
    for (which, value) in words {
        word(which).store(value, Ordering::Release);
    }
}

/// Answers a call that has come the short way, with all signals blocked, on the thread's stack for handlers.
unsafe extern "C" fn answer(kept: *mut Kept) {
    // SAFETY: the short way passes its own structure, on the stack of the calling thread, which waits and does not touch it.
    let kept = unsafe { &mut *kept };
    let mut context = MaybeUninit::<libc::ucontext_t>::uninit();
    // SAFETY: the structure stays where it is until this function returns, and every register that is read is set below.
    let frame = unsafe { Frame::of_call(context.as_mut_ptr()) };
    let [first, second, third, fourth] = kept.first;
    let [fifth, sixth] = kept.last;
    for (register, argument) in ARGUMENTS
        .into_iter()
        .zip([first, second, third, fourth, fifth, sixth])
    {
        frame.set_register(register, argument);
    }
    frame.set_register(RESULT, kept.result);
    frame.set_register(BEHIND, kept.behind);
    frame.set_register(PC, kept.behind);
    frame.set_register(WORD, 0);
    frame.set_mask(kept.mask);
    let mut call = Call::of(frame);
    trap::finish(&mut call);
    kept.result = frame.register(RESULT);
    kept.behind = frame.register(BEHIND);
    kept.word = frame.register(WORD);
    kept.target = frame.register(PC);
    kept.mask = frame.mask();
}
