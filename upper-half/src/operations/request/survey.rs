//! A look at all requests at once: while the rank is parked, and for those that the application has freed.

use stillpoint_wrappers::neutral::Status;

use super::{Kind, ORPHAN, PERSISTENT, Request, State, end, finish, in_wait, live};
use crate::ground::crossing::cross;
use crate::operations::clock::collective;
use crate::operations::synchronous;

/// Tests every request that is active in the lower half, except those that would run the application's functions.
/// Returns whether any has come to its end.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn test_all() -> bool {
    let mut moved = false;
    for request in live() {
        // SAFETY: live requests, which no other code touches now.
        unsafe {
            let it = &mut *request;
            if it.state != State::Active || it.kind == Kind::Generalized {
                continue;
            }
            if synchronous::is(it) {
                if !it.is_sent() && synchronous::sent(request) {
                    moved = true;
                    if it.flags & ORPHAN != 0 {
                        bury(request);
                    }
                }
                continue;
            }
            let (mut flag, mut status) = (0, Status::default());
            let word = &raw mut it.head.lower;
            let lent = in_wait::is(it);
            let (code, ended) = match lent {
                true => in_wait::ask(word, &mut flag, &mut status),
                false => {
                    let code = cross(|dispatch| (dispatch.test)(word, &mut flag, &mut status));
                    (code, true)
                }
            };
            if flag == 0 && code == 0 {
                continue;
            }
            status.error = code;
            finish(request, &status);
            if !ended {
                in_wait::seen(request);
            }
            moved = true;
            if it.flags & ORPHAN != 0 {
                bury(request);
            }
        }
    }
    moved
}

/// Ends a done request that the application has freed.
unsafe fn bury(request: *mut Request) {
    // SAFETY: there is no handle of it any more.
    unsafe {
        if (*request).flags & PERSISTENT != 0 {
            let word = &raw mut (*request).head.lower;
            cross(|dispatch| (dispatch.request_free)(word));
        }
        end(request);
    }
}

/// Leaves an active request that the application has freed to itself, until it is over.
///
/// # Safety
/// Inside a stub; the application's handle is gone.
pub unsafe fn abandon(request: *mut Request) {
    // SAFETY: requests of ours; only this library has orphans.
    unsafe {
        for orphan in live().into_iter().filter(|it| (**it).flags & ORPHAN != 0) {
            let it = &mut *orphan;
            let (mut flag, mut status) = (0, Status::default());
            let word = &raw mut it.head.lower;
            let code = cross(|dispatch| (dispatch.test)(word, &mut flag, &mut status));
            if flag != 0 || code != 0 {
                finish(orphan, &status);
                bury(orphan);
            }
        }
        (*request).flags |= ORPHAN;
    }
}

/// The work that is active in the lower half, as a restart sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    /// Only work that a restart could begin again.
    Nothing,
    /// Collectives whose end no member has been told of: they may still be finished.
    Repeatable,
    /// Sends, whose messages are out already, operations on files, and collectives that all members have begun: they
    /// must be finished.
    Unfinished,
}

/// The cell in which a collective operation is counted.
///
/// # Safety
/// A live request.
unsafe fn clock_of(it: &Request) -> u32 {
    if it.flags & PERSISTENT != 0 {
        it.own
    } else {
        // SAFETY: a live request holds its communicator.
        unsafe { (*it.communicator).clock }
    }
}

/// The worst of the active work.
pub fn pending() -> Pending {
    let each = live().into_iter().map(|request| {
        // SAFETY: a live request and its communicator.
        unsafe {
            let it = &*request;
            match it.kind {
                _ if it.state != State::Active => Pending::Nothing,
                Kind::Receive | Kind::Generalized => Pending::Nothing,
                // Only the receiver's word is left to come.
                _ if synchronous::is(it) && it.is_sent() => Pending::Nothing,
                Kind::Collective
                    if it.number != 0 && !collective::binding(clock_of(it), it.clock) =>
                {
                    Pending::Repeatable
                }
                _ => Pending::Unfinished,
            }
        }
    });
    each.max().unwrap_or(Pending::Nothing)
}
