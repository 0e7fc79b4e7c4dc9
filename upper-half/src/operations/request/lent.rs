//! Requests that the real MPI has in its hands, in a wait below which the driver thread stands still: they may be looked at, and must not be ended.
//!
//! `MPI_Request_get_status` says whether one is over, and MPICH's whether it has failed, but for nonblocking collective operations on 4.0. `MPI_Testall` of it and of another
//! request that is not over ends nothing as long as neither has failed; where the first one has, it says so, and has ended it. So a failure is known, and the wait that may have
//! that request in hand is left for good: the call goes on as after a restart.

use core::sync::atomic::{AtomicBool, Ordering};

use stillpoint_wrappers::neutral::{Status, Word};

use super::{CANCELLED, Kind, NO_MESSAGE, ORPHAN, Request, SEEN, State, live};
use crate::ground::arch;
use crate::ground::crossing::cross;
use crate::objects::outcome::class;
use crate::operations::clock::points::restarts;
use crate::operations::grequest;

/// Whether the driver thread stands still below a wait of the real MPI's, which has requests in its hands.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// Whether any request has been [`SEEN`] meanwhile.
static ANY: AtomicBool = AtomicBool::new(false);

/// Whether one was ended meanwhile that the wait may have in hand.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Runs `meanwhile` below a wait of the real MPI's. Requests that are found to be over are done above, as an image has to have them, and stay as they are below. When the real
/// MPI goes on it tells of them again: so they are active as before, and their messages not counted. After a restart there is nothing below. Returns whether the wait must not go on.
///
/// # Safety
/// On the driver thread, inside a stub.
pub unsafe fn look(meanwhile: impl FnOnce()) -> bool {
    let before = restarts();
    LOOKS.store(true, Ordering::Relaxed);
    meanwhile();
    LOOKS.store(false, Ordering::Relaxed);
    let ended = ENDED.swap(false, Ordering::Relaxed);
    let is_new = restarts() != before;
    if ANY.swap(false, Ordering::Relaxed) {
        for request in live() {
            // SAFETY: a live request, touched by nobody else now.
            unsafe { give_back(&mut *request, is_new) };
        }
    }
    ended || is_new
}

/// What was seen of a request is over for good in a new launch, and has yet to be told in the same one.
unsafe fn give_back(it: &mut Request, is_new: bool) {
    if it.flags & SEEN == 0 {
        return;
    }
    it.flags &= !SEEN;
    if is_new {
        return;
    }
    it.state = State::Active;
    if it.kind == Kind::Receive && it.flags & NO_MESSAGE == 0 {
        // SAFETY: the driver thread has a record.
        unsafe { arch::uncount_received() };
    }
}

/// Whether the real MPI may have a request in its hands.
pub(super) fn is(it: &Request) -> bool {
    LOOKS.load(Ordering::Relaxed)
        && it.flags & (ORPHAN | CANCELLED) == 0
        && !matches!(it.kind, Kind::OneSided | Kind::File)
}

/// Asks whether such a request is over: the error is its own. Whether it was ended by that, which happens to one that has failed.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped; `word` must be an active request's.
pub(super) unsafe fn ask(word: *mut Word, flag: &mut i32, status: &mut Status) -> (i32, bool) {
    // SAFETY: the caller's.
    unsafe {
        let code = cross(|dispatch| (dispatch.request_get_status)(*word, flag, status));
        if code != 0 || *flag == 0 {
            return (code, false);
        }
        let Some(open) = grequest::Open::new() else {
            return (0, false);
        };
        let mut words = [*word, open.word()];
        let mut statuses = [*status, Status::default()];
        let mut all = 0;
        let code = cross(|dispatch| {
            (dispatch.testall)(2, words.as_mut_ptr(), &mut all, statuses.as_mut_ptr())
        });
        if code != class::IN_STATUS || statuses[0].error == 0 {
            return (0, false);
        }
        ENDED.store(true, Ordering::Relaxed);
        *word = words[0];
        *status = statuses[0];
        (statuses[0].error, true)
    }
}

/// Such a request was found to be over, and is done above; the real MPI has it still.
///
/// # Safety
/// As [`ask`], of a request that was asked and not ended.
pub(super) unsafe fn seen(request: *mut Request) {
    // SAFETY: the caller's request.
    unsafe { (*request).flags |= SEEN };
    ANY.store(true, Ordering::Relaxed);
}
