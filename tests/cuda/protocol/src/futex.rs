//! Waiting for a word of shared memory to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;
use std::{io, ptr};

/// Where a word is.
pub fn place(word: &AtomicU32) -> usize {
    ptr::from_ref(word).addr()
}

/// Waits until woken, unless the word at a place is not `seen`. Returns early as it likes: the caller looks again. A place that
/// is mapped no more is such a return as well.
pub fn wait(place: usize, seen: u32, longest: Option<Duration>) {
    let longest = longest.map(|longest| libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: i64::from(longest.subsec_nanos()),
    });
    let timeout = longest.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel checks the place, and the timeout lives over the call.
    unsafe { libc::syscall(libc::SYS_futex, place, libc::FUTEX_WAIT, seen, timeout) };
}

/// Wakes everybody who waits for a word, in whatever process.
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
