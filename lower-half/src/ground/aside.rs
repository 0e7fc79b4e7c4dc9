//! The agent's thread steps aside for a moment: what the kernel allows to processes of one thread alone, as to make oneself a user namespace, a program
//! of one thread may do as natively.
//!
//! [`leave`] runs in the trap's handler with the upper FS: atomics and raw system calls only.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::wake;
use crate::arch::{registers, syscall};

/// What the agent's thread is about (futex word).
static THREAD: AtomicU32 = AtomicU32::new(THERE);
const THERE: u32 = 0;
const TO_LEAVE: u32 = 1;
const AWAY: u32 = 2;

/// Starts it again.
static AGAIN: AtomicUsize = AtomicUsize::new(0);

/// How long the agent may take before the caller looks after other things.
const WAIT_NANOSECONDS: u64 = 100_000_000;

/// Has the agent's thread end, if there is one; `false` where it has to stay for now. One that has returned is a thread of the process for some
/// moments more.
pub fn leave() -> bool {
    if wake::bell().is_none() {
        return true;
    }
    THREAD.store(TO_LEAVE, Ordering::SeqCst);
    wake::ring();
    syscall::futex_wait(&THREAD, TO_LEAVE, WAIT_NANOSECONDS);
    // Where it has not left just now it stays.
    THREAD
        .compare_exchange(TO_LEAVE, THERE, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
}

/// Starts it again, by a thread of the application with this area.
pub fn come_back(area: u64) {
    if THREAD.swap(THERE, Ordering::SeqCst) != AWAY {
        return;
    }
    let before = registers::fs();
    // SAFETY: the area is this thread's own, and nobody uses it: the thread has come here from the application.
    unsafe { registers::set_fs(area) };
    // SAFETY: the agent's own function.
    unsafe { std::mem::transmute::<usize, fn()>(AGAIN.load(Ordering::Relaxed))() };
    // SAFETY: as it was.
    unsafe { registers::set_fs(before) };
}

/// For the agent's thread: whether it is to leave.
pub fn is_wanted() -> bool {
    THREAD.load(Ordering::SeqCst) == TO_LEAVE
}

/// The agent's thread is about to end, unless it is not wanted to any more: `false`. `again` starts it anew.
pub fn left(again: fn()) -> bool {
    AGAIN.store(again as usize, Ordering::Relaxed);
    let left = THREAD.compare_exchange(TO_LEAVE, AWAY, Ordering::SeqCst, Ordering::SeqCst);
    syscall::futex_wake(&THREAD);
    left.is_ok()
}
