//! Waiting for a word of shared memory to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;
use std::{io, ptr};

/// Returns the address of a word.
pub fn place(word: &AtomicU32) -> usize {
    ptr::from_ref(word).addr()
}

/// Waits until woken, unless the word at an address is not `seen`. May return early, so the caller looks again. This also
/// returns if the address is no longer mapped.
pub fn wait(place: usize, seen: u32, longest: Option<Duration>) {
    let longest = longest.map(|longest| libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: i64::from(longest.subsec_nanos()),
    });
    let timeout = longest.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel checks the place, and the timeout lives over the call.
    unsafe { libc::syscall(libc::SYS_futex, place, libc::FUTEX_WAIT, seen, timeout) };
}

/// Wakes every thread that waits for a word, in any process.
pub fn wake(word: &AtomicU32) -> io::Result<()> {
    // SAFETY: the word is there; nothing of it is changed.
    match unsafe {
        libc::syscall(
            libc::SYS_futex,
            ptr::from_ref(word),
            libc::FUTEX_WAKE,
            i32::MAX,
        )
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
