//! Memory that a restart has not restored yet (`restore::arrival`), as the rest of the process sees it: an event to wait for.
//!
//! Operations that copy the process's memory, or move it, wait until all of it has come: a fork, `mremap`, a checkpoint. [`wait`] runs in the trap's handler
//! too: an atomic and a direct system call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::arch::syscall::{self, syscall6};

/// 1 while some memory is missing (futex word).
static MISSING: AtomicU32 = AtomicU32::new(0);

/// Whether memory may come that no thread waits for.
static IN_FULL: AtomicBool = AtomicBool::new(false);

/// Permits the arrival of memory that no thread waits for. Before, it would only take processor time from the threads that make the application ready.
pub fn in_full() {
    IN_FULL.store(true, Ordering::SeqCst);
}

pub fn is_in_full() -> bool {
    IN_FULL.load(Ordering::SeqCst)
}

/// Notes that memory is missing from here on.
pub fn begin() {
    MISSING.store(1, Ordering::SeqCst);
}

/// Notes that all memory has come.
pub fn ended() {
    MISSING.store(0, Ordering::SeqCst);
    let all = i32::MAX as usize;
    let word = (&raw const MISSING) as usize;
    // SAFETY: the call wakes the threads that wait at this word, which is static, and touches no memory.
    unsafe { syscall6(libc::SYS_futex, [word, PRIVATE_WAKE, all, 0, 0, 0]) };
}

const PRIVATE_WAKE: usize = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
const PRIVATE_WAIT: usize = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;

/// Returns when all memory has come.
pub fn wait() {
    in_full();
    while MISSING.load(Ordering::SeqCst) != 0 {
        let word = (&raw const MISSING) as usize;
        // SAFETY: the call waits as long as the word is 1; the word is static.
        let result = unsafe { syscall6(libc::SYS_futex, [word, PRIVATE_WAIT, 1, 0, 0, 0]) };
        if syscall::failed(result) {
            syscall::yield_now();
        }
    }
}
