//! Waits for requests by the real MPI's own functions (see `completion::real_wait`): the place on the stack where the pending one was called.
//!
//! The stack pointer of the call identifies it, so that it is not confused with another call that a function of the application's makes, which the real MPI has
//! called.
//!
//! Rules: on the driver thread only; at most one such call at a time.

use core::arch::asm;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The stack pointer of the call under way, or 0 if there is none.
pub static WAITS: AtomicUsize = AtomicUsize::new(0);

/// Notes that the call which follows is a wait. Its arguments must fit into registers.
///
/// # Safety
/// On the driver thread.
#[inline(always)]
pub unsafe fn begin_wait() {
    // SAFETY: `WAITS` is a word of this library's, which only the driver thread writes.
    unsafe { asm!("mov [rip + {}], rsp", sym WAITS, options(nostack, preserves_flags)) }
}

/// The wait has returned.
#[inline(always)]
pub fn end_wait() {
    WAITS.store(0, Ordering::Relaxed);
}

/// Whether a wait is under way.
pub fn waits() -> bool {
    WAITS.load(Ordering::Relaxed) != 0
}

/// Takes the wait under way, if it was called with that stack pointer, so that no other code finds it.
pub fn take_wait(stack: u64) -> bool {
    let stack = stack as usize;
    WAITS
        .compare_exchange(stack, 0, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// The wait goes on.
pub fn give_wait_back(stack: u64) {
    WAITS.store(stack as usize, Ordering::Relaxed);
}

/// Whether `record.receive` is not 0: the real MPI calls back while the thread waits.
///
/// # Safety
/// As [`record`](super::record).
#[inline(always)]
pub unsafe fn is_called_back() -> bool {
    // SAFETY: GS leads to this thread's record, by the caller's promise; `receive` lies at 0xa0 and is only read.
    unsafe {
        asm!(
            concat!("cmp qword ptr ", stillpoint_wrappers::record!(receive), ", 0"),
            "je {}",
            label { return false },
            options(nostack, readonly)
        );
    }
    true
}

/// Whether the shortest way is shut, or does not exist.
///
/// # Safety
/// As [`record`](super::record).
#[inline(always)]
pub unsafe fn is_shut() -> bool {
    // SAFETY: GS leads to this thread's record, by the caller's promise; `reach` lies at 0x1c, `SHUT` among its bytes.
    unsafe {
        asm!(
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(reach), ", 0"),
            "jne {}",
            label { return true },
            options(nostack, readonly)
        );
    }
    false
}

/// Counts one message less received by this thread: the real MPI will tell of it again.
///
/// # Safety
/// As [`record`](super::record).
pub unsafe fn uncount_received() {
    // SAFETY: GS leads to this thread's record, by the caller's promise; 0x28 holds its own count of received messages, which no other thread writes.
    unsafe {
        asm!(
            concat!("dec qword ptr ", stillpoint_wrappers::record!(received)),
            options(nostack)
        )
    }
}
