//! Access to a window, and the locks and flushes of passive targets.

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;
use stillpoint_wrappers::neutral::constants::PROC_NULL;

use super::body::{Body, Held, NO_CHECK, RMA_SYNC, body, open, usable};
use super::groups;
use super::uncarried::below;
use crate::ground::object::Win;
use crate::ground::{abi, crossing, handle};
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, check};
use crate::operations::clock::collective;
use crate::operations::messages::points;

/// To be called before every operation on a window: checks that an epoch is open that allows it, and notes that there is something to flush.
/// A value that is not a window is left to the lower half.
///
/// # Safety
/// Inside a stub, nothing locked; `window` must be null or a handle.
#[inline]
pub unsafe fn access(window: Win) -> MpiResult {
    // SAFETY: `window` is null or a handle, by the caller's promise; `valid` has found it alive before its body is read.
    unsafe {
        if !handle::valid(window, HandleKind::Window) {
            return Ok(());
        }
        let Some(body) = body(window) else {
            return Ok(());
        };
        let state = body.open.load(Ordering::Relaxed);
        if state == 0 {
            return Err(RMA_SYNC);
        }
        if state & open::AWAITS != 0 {
            groups::await_posts(body)?;
        }
        body.touched.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// Takes a lock. A thread that waits for it can stand still there, and asks for it anew after a restart: so the clock of this process alone
/// counts it.
///
/// # Safety
/// Inside a stub, nothing locked; `call` does nothing but call the lower half.
unsafe fn take(body: &Body, call: impl FnMut(&'static Dispatch) -> i32) -> MpiResult {
    // SAFETY: the caller is inside a stub with nothing locked, and `call` only calls the lower half.
    unsafe {
        let code = collective::clocked(body.own_clock, call);
        if crossing::pending() {
            points::unblocked();
        }
        check(code)
    }
}

/// `MPI_Win_lock`. When it returns the lock is held, even if the real MPI at first only asks for it.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_lock(kind: c_int, rank: c_int, assertion: c_int, window: Win) -> c_int {
    let (kind, rank) = (abi::lock_to_neutral(kind), abi::rank_to_neutral(rank));
    let assertion = abi::assertion_to_neutral(assertion);
    // SAFETY: `usable` looks at the window; nothing is locked, so the thread may stand still while it waits for the lock.
    unsafe {
        run(window, c"MPI_Win_lock", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_lock)(kind, rank, assertion, word));
            };
            if body.is_open(open::ALL | open::STARTED) || holds(body, rank) {
                return Err(RMA_SYNC);
            }
            take(body, |d| (d.win_lock)(kind, rank, assertion, body.locks()))?;
            if rank == PROC_NULL {
                return Ok(());
            }
            check(crossing::cross(|d| (d.win_flush)(rank, body.locks())))?;
            body.notes.lock().held.push(Held {
                rank,
                kind,
                assertion,
            });
            body.begin(open::LOCKED);
            Ok(())
        })
    }
}

/// `MPI_Win_unlock`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_unlock(rank: c_int, window: Win) -> c_int {
    let rank = abi::rank_to_neutral(rank);
    // SAFETY: `usable` looks at the window; its own window for locks exists as long as it does.
    unsafe {
        run(window, c"MPI_Win_unlock", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_unlock)(rank, word));
            };
            if rank == PROC_NULL {
                return Ok(());
            }
            if !holds(body, rank) {
                return Err(RMA_SYNC);
            }
            below(window, |d, word| (d.win_flush)(rank, word))?;
            check(crossing::cross(|d| (d.win_unlock)(rank, body.locks())))?;
            let mut notes = body.notes.lock();
            notes.held.retain(|held| held.rank != rank);
            if notes.held.is_empty() {
                body.end(open::LOCKED);
            }
            Ok(())
        })
    }
}

/// `MPI_Win_lock_all`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_lock_all(assertion: c_int, window: Win) -> c_int {
    let assertion = abi::assertion_to_neutral(assertion);
    // SAFETY: `usable` looks at the window; nothing is locked, so the thread may stand still while it waits for the locks.
    unsafe {
        run(window, c"MPI_Win_lock_all", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_lock_all)(assertion, word));
            };
            if body.is_open(open::PASSIVE | open::STARTED) {
                return Err(RMA_SYNC);
            }
            take(body, |d| (d.win_lock_all)(assertion, body.locks()))?;
            if assertion & NO_CHECK == 0 {
                check(crossing::cross(|d| (d.win_flush_all)(body.locks())))?;
            }
            body.notes.lock().all = Some(assertion);
            body.begin(open::ALL);
            Ok(())
        })
    }
}

/// `MPI_Win_unlock_all`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_unlock_all(window: Win) -> c_int {
    // SAFETY: `usable` looks at the window; the locks were taken by this process, as `open::ALL` shows.
    unsafe {
        run(window, c"MPI_Win_unlock_all", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_unlock_all)(word));
            };
            if !body.is_open(open::ALL) {
                return Err(RMA_SYNC);
            }
            flush_all(window, body)?;
            check(crossing::cross(|d| (d.win_unlock_all)(body.locks())))?;
            body.notes.lock().all = None;
            body.end(open::ALL);
            Ok(())
        })
    }
}

/// Whether this process has locked that rank.
fn holds(body: &Body, rank: i32) -> bool {
    let notes = body.notes.lock();
    notes.held.iter().any(|held| held.rank == rank)
}

/// Completes the operations that this process has begun, if there are any.
///
/// # Safety
/// Inside a stub, or parked; `window` must be the live window of that body.
pub unsafe fn flush_all(window: Win, body: &Body) -> MpiResult {
    if !body.touched.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: `window` is the live window of `body`, by the caller's promise, so its word is the lower half's.
    let flushed = unsafe { below(window, |d, word| (d.win_flush_all)(word)) };
    if flushed.is_err() {
        body.touched.store(true, Ordering::Relaxed);
    }
    flushed
}

/// A flush of one target (`Some`), or of all.
///
/// # Safety
/// As the MPI functions; `call` does nothing but call the lower half.
unsafe fn flush(
    rank: Option<i32>,
    window: Win,
    name: &'static CStr,
    call: impl FnOnce(&'static Dispatch, Word) -> i32,
) -> c_int {
    // SAFETY: `usable` looks at the window, and `call` only calls the lower half, by the caller's promise.
    unsafe {
        run(window, name, || {
            let (window, body) = usable(window)?;
            if let Some(body) = body {
                let all = body.is_open(open::ALL);
                let allowed = match rank {
                    Some(rank) => all || rank == PROC_NULL || holds(body, rank),
                    None => all || body.is_open(open::LOCKED),
                };
                if !allowed {
                    return Err(RMA_SYNC);
                }
            }
            below(window, call)
        })
    }
}

/// `MPI_Win_flush`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_flush(rank: c_int, window: Win) -> c_int {
    let rank = abi::rank_to_neutral(rank);
    // SAFETY: `flush` looks at the window; the rank is a number that the real MPI checks.
    unsafe {
        flush(Some(rank), window, c"MPI_Win_flush", |d, word| {
            (d.win_flush)(rank, word)
        })
    }
}

/// `MPI_Win_flush_local`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_flush_local(rank: c_int, window: Win) -> c_int {
    let rank = abi::rank_to_neutral(rank);
    // SAFETY: `flush` looks at the window before the real MPI gets its word and the rank.
    unsafe {
        flush(Some(rank), window, c"MPI_Win_flush_local", |d, word| {
            (d.win_flush_local)(rank, word)
        })
    }
}

/// `MPI_Win_flush_all`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_flush_all(window: Win) -> c_int {
    // SAFETY: `flush` looks at the window.
    unsafe {
        flush(None, window, c"MPI_Win_flush_all", |d, word| {
            (d.win_flush_all)(word)
        })
    }
}

/// `MPI_Win_flush_local_all`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_flush_local_all(window: Win) -> c_int {
    // SAFETY: `flush` looks at the window before the real MPI gets its word.
    unsafe {
        flush(None, window, c"MPI_Win_flush_local_all", |d, word| {
            (d.win_flush_local_all)(word)
        })
    }
}
