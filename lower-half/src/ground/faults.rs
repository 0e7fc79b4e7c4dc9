//! The descriptor with which the kernel keeps track of what the application writes (`userfaultfd`; `capture::tracking`).
//!
//! Memory is registered with one such descriptor only. So an application that makes one of its own has it alone: this one is closed,
//! which takes back all that was registered with it.
//!
//! [`give_way`] runs in the trap's handler: an atomic and a system call by hand.

use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::arch::syscall::syscall3;

static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static GIVEN_WAY: AtomicBool = AtomicBool::new(false);

/// Keeps it; the one before is closed.
pub fn keep(descriptor: OwnedFd) {
    close(DESCRIPTOR.swap(descriptor.into_raw_fd(), Ordering::SeqCst));
}

/// It, as long as the application has none. Threads that could make one must stand.
pub fn descriptor() -> Option<RawFd> {
    Some(DESCRIPTOR.load(Ordering::SeqCst)).filter(|number| *number >= 0)
}

/// Whether the application has asked for one of its own.
pub fn gave_way() -> bool {
    GIVEN_WAY.load(Ordering::SeqCst)
}

/// The application makes one of its own.
pub fn give_way() {
    GIVEN_WAY.store(true, Ordering::SeqCst);
    let_go();
}

/// Nobody needs it any more.
pub fn let_go() {
    close(DESCRIPTOR.swap(-1, Ordering::SeqCst));
}

fn close(number: RawFd) {
    if number >= 0 {
        // SAFETY: it was this module's, and nobody has it any more.
        unsafe { syscall3(libc::SYS_close, number as usize, 0, 0) };
    }
}
