//! Requests that the real MPI uses in a wait below which the driver thread stands still: they may be looked at, but must not be ended.
//!
//! `MPI_Request_get_status` says whether a request is over. MPICH's also says whether it has failed, except for nonblocking collective operations on 4.0.
//! `MPI_Testall` of the request and of another one that is not over ends nothing as long as neither has failed; if the first one has, the call says so, and has
//! ended it. So a failure is known, and the wait that may use that request is left for good: the call goes on as after a restart.

use core::sync::atomic::{AtomicBool, Ordering};

use stillpoint_wrappers::neutral::{Status, Word};

use super::{CANCELLED, Kind, NO_MESSAGE, ORPHAN, Request, SEEN, State, live};
use crate::ground::arch;
use crate::ground::crossing::cross;
use crate::objects::outcome::class;
use crate::operations::clock::points::restarts;
use crate::operations::grequest;

/// Whether the driver thread stands still below a wait of the real MPI's, which uses requests.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// Whether any request has been [`SEEN`] meanwhile.
static ANY: AtomicBool = AtomicBool::new(false);

/// Whether a request that the wait may use was ended meanwhile.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Runs `meanwhile` below a wait of the real MPI's. Requests that are found to be over are done above, as an image has to have them, and stay as they are
/// below. When the real MPI goes on, it tells of them again: so they become active as before, and their messages do not count. After a restart the lower half
/// has nothing of them. Returns whether the wait must not go on.
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
            // SAFETY: a live request, which no other code touches now.
            unsafe { give_back(&mut *request, is_new) };
        }
    }
    ended || is_new
}

/// Undoes the finding that a request is over, because the same launch has yet to tell it. In a new launch it is over for good.
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

/// Whether the real MPI may be using a request in such a wait.
pub(super) fn is(it: &Request) -> bool {
    LOOKS.load(Ordering::Relaxed)
        && it.flags & (ORPHAN | CANCELLED) == 0
        && !matches!(it.kind, Kind::OneSided | Kind::File)
}

/// Asks whether such a request is over. Returns the request's error, and whether the question has ended it, as happens to a failed one.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped; `word` must be an active request's.
pub(super) unsafe fn ask(word: *mut Word, flag: &mut i32, status: &mut Status) -> (i32, bool) {
    // SAFETY: `word` is an active request's, by the caller's promise; every other thread is stopped, so the real MPI is asked about it by this one only.
    unsafe {
        let code = cross(|dispatch| (dispatch.request_get_status)(*word, flag, status));
        if code != 0 || *flag == 0 {
            return (code, false);
        }
        let Some(open) = grequest::PendingGrequest::new() else {
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

/// Marks a request that was found to be over and is done above, while the real MPI still has it.
///
/// # Safety
/// As [`ask`], of a request that was asked and not ended.
pub(super) unsafe fn seen(request: *mut Request) {
    // SAFETY: the request is alive, by the caller's promise, and every other thread is stopped.
    unsafe { (*request).flags |= SEEN };
    ANY.store(true, Ordering::Relaxed);
}
