//! Signal masks of the application: SIGSYS and the stop signal are kept out of the kernel's masks.
//!
//! If the application believes that it blocks one of them, that is noted for its thread, so that it reads back the mask that it has set. In a signal frame that
//! the application sees, the mask is the one that it believes in.

use core::sync::atomic::Ordering;

use super::{bit, ours, stop_signal};
use crate::arch::frame::Frame;
use crate::arch::springboard::Piece;
use crate::gate::call::{Call, errno};
use crate::gate::{sleep, user};
use crate::threads::deadlines;
use crate::threads::registry::{Thread, flag};

/// The signals that the kernel does not let a process block.
const UNBLOCKABLE: u64 = bit(libc::SIGKILL) | bit(libc::SIGSTOP);

/// Whether the thread believes that it blocks SIGSYS, and the stop signal.
pub fn beliefs(thread: Thread) -> [bool; 2] {
    let flags = thread.notes().flags.load(Ordering::Relaxed);
    [flag::BELIEVES_SIGSYS, flag::BELIEVES_STOP].map(|flag| flags & flag != 0)
}

/// Notes the beliefs of a thread.
pub fn believe_again(thread: Thread, beliefs: [bool; 2]) {
    let flags = &thread.notes().flags;
    for (flag, believed) in [flag::BELIEVES_SIGSYS, flag::BELIEVES_STOP]
        .into_iter()
        .zip(beliefs)
    {
        if believed {
            flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }
}

/// Returns those of our signals that the thread believes it blocks.
pub fn believed(thread: Thread) -> u64 {
    let [sigsys, stop] = beliefs(thread);
    let either = |believed, signal| if believed { bit(signal) } else { 0 };
    either(sigsys, libc::SIGSYS) | either(stop, stop_signal())
}

/// Notes which of our signals are in `mask`: the thread believes that it blocks these, and no others of ours.
pub fn believe(thread: Thread, mask: u64) {
    let signals = [libc::SIGSYS, stop_signal()];
    believe_again(thread, signals.map(|signal| mask & bit(signal) != 0));
}

/// Returns the mask that the calling thread believes it has, for the kernel's `mask`.
pub fn as_believed(mask: u64) -> u64 {
    mask | Thread::current().map_or(0, believed)
}

/// Called before a handler of the application runs on top of `frame` with `blocked` as well: puts the mask that the application believes in into the frame.
pub(super) fn entered(thread: Thread, frame: Frame, blocked: u64) {
    let before = believed(thread);
    frame.set_mask(frame.mask() | before);
    if blocked & ours() != 0 {
        believe(thread, before | blocked);
    }
}

/// Called after the handler has returned; it may have changed the mask in `frame`.
pub(super) fn left(thread: Thread, frame: Frame) {
    let mask = frame.mask();
    believe(thread, mask);
    frame.set_mask(mask & !ours());
}

/// `rt_sigprocmask`: the frame's mask is what the thread returns to.
pub fn on_sigprocmask(call: &mut Call) -> isize {
    let [how, new, old, size, ..] = call.arguments();
    if size != 8 {
        return errno(libc::EINVAL);
    }
    let frame = call.frame();
    let before = as_believed(frame.mask());
    if new != 0 {
        let set: u64 = match user::read(new) {
            Ok(set) => set,
            Err(error) => return error,
        };
        let after = match how as i32 {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return errno(libc::EINVAL),
        };
        frame.set_mask(after & !(ours() | UNBLOCKABLE));
        if (after ^ before) & ours() != 0
            && let Some(thread) = Thread::current()
        {
            believe(thread, after);
        }
    }
    if old != 0
        && let Err(error) = user::write_word(old, before)
    {
        return error;
    }
    0
}

/// Answers a call with a signal mask as an argument: the call is made without our signals in the mask. If there is no mask, or it cannot be read, the kernel
/// reports that.
pub fn on_mask_argument(call: &mut Call, argument: usize, piece: Piece) -> isize {
    match user::read::<u64>(call.argument(argument)) {
        Ok(mask) => call.redirect(piece, (mask & !ours()) as usize),
        Err(_) => call.redirect_plain(),
    }
}

/// The same for a wait with a timeout, for which `until` is the piece.
fn on_mask_until(
    call: &mut Call,
    argument: usize,
    [piece, until]: [Piece; 2],
    time: Option<u64>,
) -> isize {
    let mask = user::read::<u64>(call.argument(argument)).map(|mask| (mask & !ours()) as usize);
    match (mask, time.and_then(deadlines::end_after)) {
        (Ok(mask), Some(end)) => call.redirect_until(until, mask, end),
        (Ok(mask), None) => call.redirect(piece, mask),
        (Err(_), _) => call.redirect_plain(),
    }
}

/// `rt_sigtimedwait`.
pub fn on_sigtimedwait(call: &mut Call) -> isize {
    let pieces = [Piece::CallSignalMask0, Piece::CallSignalMask0Until];
    on_mask_until(call, 0, pieces, sleep::interval(call, 2))
}

/// `epoll_pwait`, with a mask.
pub fn on_epoll_pwait(call: &mut Call) -> isize {
    let pieces = [Piece::CallMask4, Piece::CallMask4Until];
    on_mask_until(call, 4, pieces, sleep::milliseconds(call, 3))
}

/// `epoll_pwait2`, with a mask.
pub fn on_epoll_pwait2(call: &mut Call) -> isize {
    let pieces = [Piece::CallMask4, Piece::CallMask4Until];
    on_mask_until(call, 4, pieces, sleep::interval(call, 3))
}

/// `pselect6`, whose mask is behind one more pointer, with its size.
pub fn on_pselect(call: &mut Call) -> isize {
    let mask = match user::read::<[usize; 2]>(call.argument(5)) {
        Ok([mask, 8]) => user::read::<u64>(mask),
        Ok(_) | Err(_) => return call.redirect_plain(),
    };
    match mask {
        Ok(mask) => call.redirect(Piece::CallMask5, (mask & !ours()) as usize),
        Err(_) => call.redirect_plain(),
    }
}
