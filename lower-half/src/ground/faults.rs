//! The descriptor through which the kernel tracks the application's writes (`userfaultfd`; `capture::tracking`).
//!
//! Memory can be registered with only one such descriptor. So if the application makes one, this one is closed, which unregisters its memory.
//!
//! [`give_way`] runs in the trap's handler: an atomic and a direct system call.

use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::arch::syscall::syscall3;

static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static GIVEN_WAY: AtomicBool = AtomicBool::new(false);

/// Keeps a descriptor; the previous one is closed.
pub fn keep(descriptor: OwnedFd) {
    close(DESCRIPTOR.swap(descriptor.into_raw_fd(), Ordering::SeqCst));
}

/// Returns the descriptor, as long as the application has none. Threads that could make one must be stopped.
pub fn descriptor() -> Option<RawFd> {
    Some(DESCRIPTOR.load(Ordering::SeqCst)).filter(|number| *number >= 0)
}

/// Whether the application has asked for a descriptor of its own.
pub fn gave_way() -> bool {
    GIVEN_WAY.load(Ordering::SeqCst)
}

/// Closes the descriptor, because the application makes its own.
pub fn give_way() {
    GIVEN_WAY.store(true, Ordering::SeqCst);
    let_go();
}

/// Closes the descriptor, which is not needed any more.
pub fn let_go() {
    close(DESCRIPTOR.swap(-1, Ordering::SeqCst));
}

fn close(number: RawFd) {
    if number >= 0 {
        // SAFETY: the descriptor was opened by this module, and nothing else uses it.
        unsafe { syscall3(libc::SYS_close, number as usize, 0, 0) };
    }
}
