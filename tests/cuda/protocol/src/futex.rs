//! Waiting for a word of shared memory to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;
use std::{io, ptr};

/// Waits until woken, unless the word is not `seen`. Returns early as it likes: the caller looks again. An address that is
/// mapped no more is such a return as well.
pub fn wait(word: *const AtomicU32, seen: u32, longest: Option<Duration>) {
    let longest = longest.map(|longest| libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: i64::from(longest.subsec_nanos()),
    });
    let timeout = longest.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel checks the address of the word, and the timeout lives over the call.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, seen, timeout) };
}

/// Wakes everybody who waits for a word, in whatever process.
pub fn wake(word: *const AtomicU32) -> io::Result<()> {
    // SAFETY: the kernel checks the address of the word.
    match unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
