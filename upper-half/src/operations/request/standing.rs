//! A request's kind, state and flags and whether it is [brief](super::brief), in one word: the four lie side by
//! side, so one comparison answers for all of them.

use core::mem::offset_of;

use super::{Kind, NO_MESSAGE, Request, State};

const _: () = {
    let kind = offset_of!(Request, kind);
    assert!(kind % align_of::<u32>() == 0);
    assert!(offset_of!(Request, state) == kind + 1);
    assert!(offset_of!(Request, flags) == kind + 2);
    assert!(offset_of!(Request, brief) == kind + 3);
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Standing(u32);

impl Standing {
    /// A brief collective operation.
    pub const BRIEF: Standing = Standing::active(Kind::Collective, NO_MESSAGE, true);
    /// Any other collective operation that is not persistent.
    const COLLECTIVE: Standing = Standing::active(Kind::Collective, NO_MESSAGE, false);

    const fn active(kind: Kind, flags: u8, brief: bool) -> Standing {
        Standing(u32::from_le_bytes([
            kind as u8,
            State::Active as u8,
            flags,
            brief as u8,
        ]))
    }

    /// The word of a request.
    ///
    /// # Safety
    /// `request` must be a slot of ours, alive.
    #[inline(always)]
    pub unsafe fn of(request: *const Request) -> Standing {
        // SAFETY: `request` is a slot of ours, by the caller's promise; the four fields lie side by side from `kind` on, four bytes, aligned.
        unsafe { Standing((&raw const (*request).kind).cast::<u32>().read()) }
    }

    /// Whether it is a message under way, not persistent and not cancelled.
    #[inline(always)]
    pub fn is_message(self) -> bool {
        // Nothing is set except the kind.
        self.0 >> 8 == Standing::active(Kind::Receive, 0, false).0 >> 8
    }

    /// Whether it is a collective operation that is not brief. Kept out of the way of messages, which are more frequent.
    #[cold]
    #[inline(never)]
    pub fn is_other_collective(self) -> bool {
        self == Standing::COLLECTIVE
    }
}
