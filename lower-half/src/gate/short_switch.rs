//! Whether trapped calls may go the short way (`gate::short`).

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::layout::{Slot, slot};

/// Returns a word of the short way.
pub fn word(which: Slot) -> &'static AtomicU64 {
    // SAFETY: the gate region is mapped and writable, and the word is aligned and changed atomically only.
    unsafe { &*(slot(which) as *const AtomicU64) }
}

/// Whether calls may go this way.
pub fn is_open() -> bool {
    word(Slot::ShortOff).load(Ordering::Relaxed) == 0
}

/// Closes the way, so that every call is made where it stands: another observer of the application's system calls must see only those.
pub fn close() {
    word(Slot::ShortOff).store(1, Ordering::Release);
}
