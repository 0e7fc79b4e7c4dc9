//! Fences, and the epochs that groups open to each other.

use std::ffi::c_int;

use super::body::{NO_SUCCEED, RMA_SYNC, open, usable};
use super::groups::{self, COMPLETE, POST};
use super::passive::flush_all;
use super::uncarried::below;
use crate::ground::abi;
use crate::ground::object::{Group, Win};
use crate::objects::errhandler::run;
use crate::objects::outcome::{check, give};
use crate::operations::clock::collective;

/// `MPI_Win_fence`: all members complete the operations that they have begun, and meet. A member that waits for the others can stand still there, and meets
/// them anew after a restart.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_fence(assertion: c_int, window: Win) -> c_int {
    let assertion = abi::assertion_to_neutral(assertion);
    // SAFETY: `usable` looks at the window; nothing is locked, so the thread may stand still at the barrier.
    unsafe {
        run(window, c"MPI_Win_fence", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return collective::clocked_once((*window).clock, || {
                    below(window, |d, word| (d.win_fence)(assertion, word))
                });
            };
            if body.is_open(open::PASSIVE | open::STARTED) || body.notes.lock().posted.is_some() {
                return Err(RMA_SYNC);
            }
            flush_all(window, body)?;
            check(collective::clocked(body.clock, |d| {
                (d.barrier)(body.communicator())
            }))?;
            below(window, |d, word| (d.win_sync)(word))?;
            if assertion & NO_SUCCEED == 0 {
                body.begin(open::FENCE);
            } else {
                body.end(open::FENCE);
            }
            Ok(())
        })
    }
}

/// `MPI_Win_post`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_post(to: Group, assertion: c_int, window: Win) -> c_int {
    // SAFETY: `usable` looks at the window, and `groups` at the group's handle.
    unsafe {
        run(window, c"MPI_Win_post", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                let assertion = abi::assertion_to_neutral(assertion);
                let to = groups::word(to)?;
                return below(window, |d, word| (d.win_post)(to, assertion, word));
            };
            let ranks = groups::ranks(body, to)?;
            if body.notes.lock().posted.is_some() {
                return Err(RMA_SYNC);
            }
            below(window, |d, word| (d.win_sync)(word))?;
            groups::tell(body, &ranks, POST)?;
            body.notes.lock().posted = Some(ranks);
            Ok(())
        })
    }
}

/// `MPI_Win_start`: the first operation waits for the members of the group.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_start(to: Group, assertion: c_int, window: Win) -> c_int {
    // SAFETY: `usable` looks at the window, and `groups` at the group's handle, whose ranks are copied.
    unsafe {
        run(window, c"MPI_Win_start", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                let assertion = abi::assertion_to_neutral(assertion);
                let to = groups::word(to)?;
                return below(window, |d, word| (d.win_start)(to, assertion, word));
            };
            let ranks = groups::ranks(body, to)?;
            if body.is_open(open::PASSIVE | open::STARTED) {
                return Err(RMA_SYNC);
            }
            body.notes.lock().started = Some(ranks);
            body.begin(open::STARTED | open::AWAITS);
            Ok(())
        })
    }
}

/// `MPI_Win_complete`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_complete(window: Win) -> c_int {
    // SAFETY: `usable` looks at the window, which MPI demands to live until the call returns; nothing is locked while it waits.
    unsafe {
        run(window, c"MPI_Win_complete", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_complete)(word));
            };
            if !body.is_open(open::STARTED) {
                return Err(RMA_SYNC);
            }
            groups::await_posts(body)?;
            let Some(ranks) = body.notes.lock().started.clone() else {
                return Err(RMA_SYNC);
            };
            flush_all(window, body)?;
            groups::tell(body, &ranks, COMPLETE)?;
            body.notes.lock().started = None;
            body.end(open::STARTED);
            Ok(())
        })
    }
}

/// `MPI_Win_wait`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_wait(window: Win) -> c_int {
    // SAFETY: `usable` looks at the window; nothing is locked, so the thread may stand still while it waits.
    unsafe {
        run(window, c"MPI_Win_wait", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_wait)(word));
            };
            groups::until(body, || groups::completed(body))?;
            below(window, |d, word| (d.win_sync)(word))
        })
    }
}

/// `MPI_Win_test`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_test(window: Win, flag: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the window; MPI demands a writable flag, and `give` refuses a null one.
    unsafe {
        run(window, c"MPI_Win_test", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                return below(window, |d, word| (d.win_test)(word, flag));
            };
            groups::take_in(body)?;
            let done = groups::completed(body)?;
            if done {
                below(window, |d, word| (d.win_sync)(word))?;
            }
            give(flag, c_int::from(done))
        })
    }
}
