//! The places where a thread stands still, and the park point before a collective operation.
//!
//! Rules: a thread stands still inside a stub, with no lock held and nothing of the lower half on the stack that a restart
//! would return to.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use stillpoint_clock::rank::Pending;
use stillpoint_wrappers::gate::DriverState;

use crate::ground::arch;
use crate::ground::crossing::{StayKind, gate};

/// Nanoseconds that a thread waits for targets before it looks again.
pub const SHORT: u64 = 1_000_000;

/// Whether the last return of the driver thread's loop used up an advance.
pub static ADVANCED: AtomicBool = AtomicBool::new(false);

/// Restarts so far.
static RESTARTS: AtomicU32 = AtomicU32::new(0);

/// Counts a restart: the real MPI's pending work is over.
pub fn restarted() {
    RESTARTS.fetch_add(1, Ordering::Relaxed);
}

/// The number of restarts so far. If it changes while a thread stands still, nothing of the lower half on its stack is left.
pub fn restarts() -> u32 {
    RESTARTS.load(Ordering::Relaxed)
}

/// Sleeps until the bell rings, at most that many nanoseconds (0: for ever).
pub fn sleep(bell: u32, nanoseconds: u64) {
    match gate().services.futex_wait {
        // SAFETY: works with any FS; the word lies in the gate page.
        Some(wait) => unsafe { wait(&gate().bell, bell, nanoseconds) },
        None => arch::yield_processor(),
    }
}

/// Stops this thread in a signal frame. Returns when the checkpoint lets it go on.
///
/// # Safety
/// Inside a stub, with no lock held and nothing of the lower half on the stack that a restart would return to.
pub unsafe fn stand_still() {
    // SAFETY: the thread is inside a stub, so it has a record; at `inside == 0` the handler of the signal takes it, with no lock held.
    unsafe {
        let before = arch::inside();
        arch::set_inside(StayKind::No as u32);
        if let Some(park_self) = gate().services.park_self {
            park_self();
        }
        arch::set_inside(before);
    }
}

/// Lets a thread that is not the driver be stopped where it is, for a moment: it sleeps outside MPI until the bell
/// rings or a millisecond is over. The sleep is made here and not by the lower half's service, because
/// a restart returns to the instruction after it.
///
/// # Safety
/// As [`stand_still`].
pub unsafe fn stand_aside(bell: u32) {
    // SAFETY: the thread is inside a stub with no lock held, so it has a record and may be stopped while it sleeps.
    unsafe {
        let before = arch::inside();
        arch::set_inside(StayKind::No as u32);
        arch::futex_wait(&gate().bell, bell, SHORT);
        arch::set_inside(before);
    }
}

/// Uses up one permission to pass a park point.
pub fn use_advance() {
    let _ = gate()
        .advances
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |advances| {
            advances.checked_sub(1)
        });
}

/// Tells the agent where the driver thread is.
pub fn say(state: DriverState) {
    gate().driver_state.store(state as u32, Ordering::SeqCst);
}

/// How far the pending checkpoint has come.
pub fn pending() -> Pending {
    Pending::from_word(gate().pending.load(Ordering::SeqCst))
}

/// The park point before a collective operation: every target is reached. Returns whether an advance
/// lets the thread pass; otherwise the decision is due again.
///
/// # Safety
/// As [`stand_still`].
pub unsafe fn at_collective(bell: u32) -> bool {
    // SAFETY: the thread is inside a stub with no lock held and nothing of the lower half on its stack, by the caller's promise.
    unsafe {
        if arch::is_driver() {
            ADVANCED.store(false, Ordering::Relaxed);
            stand_still();
            return ADVANCED.swap(false, Ordering::Relaxed);
        }
        stand_aside(bell);
        false
    }
}
