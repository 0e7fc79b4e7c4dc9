//! The life of a request, from the lower half's word to the end that the application is told.

use core::sync::atomic::{AtomicUsize, Ordering};

use stillpoint_wrappers::neutral::{Status, Word};

use super::{
    Arguments, CANCELLED, Completion, EMPTY, Ending, Kind, NO_MESSAGE, PERSISTENT, Request, State,
    create, end, light, live,
};
use crate::ground::arch;
use crate::ground::object::Object;
use crate::operations::clock::collective;

/// Requests with a completion.
pub(super) static COMPLETIONS: AtomicUsize = AtomicUsize::new(0);

/// Makes the request of an operation that the lower half has begun as `word`: a nonblocking
/// collective, or one on a window or file ([`Kind::OneSided`], [`Kind::File`]).
///
/// # Safety
/// As [`create`].
#[inline(always)]
pub unsafe fn adopt(kind: Kind, communicator: *mut Object, word: Word) -> *mut Object {
    // SAFETY: the communicator is alive or null, by the caller's promise; the request is new, so no other code knows it.
    unsafe {
        let request = create(&Arguments::without_message(kind, communicator), NO_MESSAGE);
        (*request).head.lower = word;
        request.cast()
    }
}

/// Whether an active request has yet to fill in `context` (a communicator of `MPI_Comm_idup`):
/// until then it must not be used.
pub fn is_being_made(context: *mut ()) -> bool {
    if COMPLETIONS.load(Ordering::Relaxed) == 0 {
        return false;
    }
    live().into_iter().any(|request| {
        // SAFETY: `live` gives live requests, whose slots are never unmapped.
        let it = unsafe { &*request };
        it.completion.is_some() && it.context == context && it.state == State::Active
    })
}

/// Has `completion(context)` run when the application is told that the request is over, and `ending(context)` when the context is no longer needed.
///
/// # Safety
/// `request` must be a live request that no other code knows yet.
pub unsafe fn on_completion(
    request: *mut Object,
    completion: Completion,
    ending: Option<Ending>,
    context: *mut (),
) {
    // SAFETY: the request is alive and no other code knows it yet, by the caller's promise, so its functions may be set.
    unsafe {
        let request = request.cast::<Request>();
        if (*request).completion.replace(completion).is_none() {
            COMPLETIONS.fetch_add(1, Ordering::Relaxed);
        }
        (*request).ending = ending;
        (*request).context = context;
    }
}

/// The outcome of telling the application of a request's end.
#[must_use]
pub struct CompletionOutcome {
    /// The request does not exist any more.
    pub ended: bool,
    /// The error of its completion, or 0.
    pub error: i32,
}

/// Tells the application that an active or done operation is over: counts its message, runs its
/// completion, and leaves a persistent request inactive.
///
/// # Safety
/// Inside a stub; `request` must be alive, and the lower half have nothing active for it; `status` is the operation's if it was asked for (it must be for a
/// cancelled one).
#[inline(always)]
pub unsafe fn complete(request: *mut Request, status: Option<&Status>) -> CompletionOutcome {
    // SAFETY: the request is alive, by the caller's promise, and MPI lets only one thread complete it.
    unsafe {
        let it = &mut *request;
        if it.state == State::Active {
            count(it, status);
        }
        bind(it);
        let mut error = 0;
        if let Some(completion) = it.completion {
            error = run(it, completion, status);
        }
        if it.flags & PERSISTENT != 0 {
            it.state = State::Inactive;
            it.flags &= !CANCELLED;
            return CompletionOutcome {
                ended: false,
                error,
            };
        }
        end(request);
        CompletionOutcome { ended: true, error }
    }
}

/// Binds a nonblocking collective operation, because the application is about to be told of its end. From then on it has no number, for it is never begun
/// again.
///
/// # Safety
/// As [`complete`].
#[inline(always)]
unsafe fn bind(it: &mut Request) {
    if it.number == 0 {
        return;
    }
    // SAFETY: the request holds its communicator, so that is alive.
    unsafe {
        if it.flags & PERSISTENT == 0 {
            collective::tell(it.communicator, it.number);
        } else {
            it.told = it.number;
            collective::bind_cell(it.own);
        }
    }
    it.number = 0;
}

/// Tells the application that an active or done operation is over, and leaves the request to a later call that ends it: its buffers are the application's
/// again.
///
/// # Safety
/// Inside a stub, nothing locked; a live request, a whole one.
pub unsafe fn tell(request: *mut Request) {
    // SAFETY: the request is a live, whole one, by the caller's promise.
    unsafe {
        // The call that ends a brief request reads its number.
        (*request).brief = false;
        bind(&mut *request);
    }
}

/// Runs a completion. The thread may be stopped in it: a restart then finds a request that is over, and does not begin it again.
///
/// # Safety
/// As [`complete`].
#[cold]
unsafe fn run(it: &mut Request, completion: Completion, status: Option<&Status>) -> i32 {
    it.state = State::Done;
    it.status = status.copied().unwrap_or(EMPTY);
    // SAFETY: the context that came with it.
    unsafe { completion(it.context) }
}

/// Counts the message of an operation that has just come to its end in the lower half.
///
/// # Safety
/// On a thread with a record.
#[inline(always)]
pub unsafe fn count(request: &Request, status: Option<&Status>) {
    if request.flags & NO_MESSAGE != 0 {
        return;
    }
    let cancelled =
        request.flags & CANCELLED != 0 && status.is_some_and(|status| status.cancelled());
    // SAFETY: the thread has a record, by the caller's promise.
    unsafe {
        if request.kind == Kind::Receive {
            if !cancelled {
                arch::count_received();
            }
        } else if cancelled {
            arch::uncount_sent();
        }
    }
}

/// Notes that an active operation, light or whole, is over, for the application to be told later.
///
/// # Safety
/// As [`complete`].
pub unsafe fn finish(request: *mut Request, status: &Status) {
    // SAFETY: the request is alive, by the caller's promise, and whole once `unfold` has returned; only this thread completes it.
    unsafe {
        light::unfold(request);
        let it = &mut *request;
        count(it, Some(status));
        it.status = *status;
        it.state = State::Done;
    }
}
