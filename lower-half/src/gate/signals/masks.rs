//! Signal masks of the application: SIGSYS and the stop signal are taken out of them.

use super::{bit, ours};
use crate::arch::springboard::Piece;
use crate::gate::trap::{Call, errno};

/// `rt_sigprocmask` with a new mask: the frame's mask is what the thread returns to.
pub fn on_sigprocmask(call: &mut Call) -> isize {
    let [how, new, old, size, ..] = call.arguments();
    if size != 8 {
        return errno(libc::EINVAL);
    }
    let frame = call.frame();
    let before = frame.mask();
    // SAFETY: the filter lets only calls with a new mask come here; the application gives 8 bytes.
    let set = unsafe { (new as *const u64).read_unaligned() };
    let after = match how as i32 {
        libc::SIG_BLOCK => before | set,
        libc::SIG_UNBLOCK => before & !set,
        libc::SIG_SETMASK => set,
        _ => return errno(libc::EINVAL),
    };
    frame.set_mask(after & !(ours() | bit(libc::SIGKILL) | bit(libc::SIGSTOP)));
    if old != 0 {
        // SAFETY: the application gives room for 8 bytes.
        unsafe { (old as *mut u64).write_unaligned(before) };
    }
    0
}

/// A call that has a signal mask as an argument: it is made with our signals taken out of the mask.
pub fn on_mask_argument(call: &mut Call, argument: usize, piece: Piece) -> isize {
    let address = call.argument(argument);
    if address == 0 {
        return call.redirect_plain();
    }
    // SAFETY: the application gives 8 bytes.
    let mask = unsafe { (address as *const u64).read_unaligned() };
    call.redirect(piece, (mask & !ours()) as usize)
}

/// `pselect6`, whose mask is behind one more pointer.
pub fn on_pselect(call: &mut Call) -> isize {
    let address = call.argument(5);
    // SAFETY: the filter lets only calls with the structure come here: a pointer and a size.
    let mask = unsafe { (address as *const usize).read_unaligned() };
    if mask == 0 {
        return call.redirect_plain();
    }
    // SAFETY: the application gives 8 bytes.
    let mask = unsafe { (mask as *const u64).read_unaligned() };
    call.redirect(Piece::CallMaskR9, (mask & !ours()) as usize)
}
