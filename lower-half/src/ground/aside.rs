//! Lets the agent's thread end for a moment. The kernel permits some calls only to single-threaded processes, such as entering a new user namespace; a
//! single-threaded program may then make them as it could natively.
//!
//! [`leave`] runs in the trap's handler with the upper FS: atomics and raw system calls only.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::wake;
use crate::arch::{registers, syscall};

/// The state of the agent's thread (futex word).
static THREAD: AtomicU32 = AtomicU32::new(THERE);
const THERE: u32 = 0;
const TO_LEAVE: u32 = 1;
const AWAY: u32 = 2;

/// The function that starts the agent's thread again.
static AGAIN: AtomicUsize = AtomicUsize::new(0);

/// How long the caller waits for the agent before it does other things.
const WAIT_NANOSECONDS: u64 = 100_000_000;

/// Has the agent's thread end, if there is one; returns `false` if it has to stay for now. A thread that has returned still counts as the process's for a few
/// moments.
pub fn leave() -> bool {
    if wake::bell().is_none() {
        return true;
    }
    THREAD.store(TO_LEAVE, Ordering::SeqCst);
    wake::ring();
    syscall::futex_wait(&THREAD, TO_LEAVE, WAIT_NANOSECONDS);
    // An agent that has not left in this time stays.
    THREAD
        .compare_exchange(TO_LEAVE, THERE, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
}

/// Starts the agent's thread again, from a thread of the application with this area.
pub fn come_back(area: u64) {
    if THREAD.swap(THERE, Ordering::SeqCst) != AWAY {
        return;
    }
    let before = registers::fs();
    // SAFETY: the area is this thread's own and not in use, since the thread has come here from the application; the agent's code, which runs next, belongs to
    // it.
    unsafe { registers::set_fs(area) };
    // SAFETY: `AGAIN` holds the agent's own function of this type, which is set before its thread can be away.
    unsafe { std::mem::transmute::<usize, fn()>(AGAIN.load(Ordering::Relaxed))() };
    // SAFETY: this is the area that was in place before, and the caller's code, which runs next, belongs to it.
    unsafe { registers::set_fs(before) };
}

/// Whether the agent's thread is asked to leave; for that thread.
pub fn is_wanted() -> bool {
    THREAD.load(Ordering::SeqCst) == TO_LEAVE
}

/// Notes that the agent's thread is about to end; returns `false` if it is not asked to any more. `again` starts it again.
pub fn left(again: fn()) -> bool {
    AGAIN.store(again as usize, Ordering::Relaxed);
    let left = THREAD.compare_exchange(TO_LEAVE, AWAY, Ordering::SeqCst, Ordering::SeqCst);
    syscall::futex_wake(&THREAD);
    left.is_ok()
}
