//! Waiting for requests and testing them: `MPI_Wait`, `MPI_Test` and their `any`, `all` and `some` forms.
//!
//! The lower half gets an array of words, one a request. A request that is done above (its message had been
//! drained, or it came to its end while parked) crosses as a null or inactive one and has its
//! status filled in here. A call that blocks is interruptible: after each interruption everything is looked
//! up anew, because a restart may lie in between.

use core::ffi::{CStr, c_int};
use core::ptr;

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::gate::AGAIN;
use stillpoint_wrappers::neutral::Status;

use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::Object;
use crate::objects::errhandler::raise;
#[cfg(not(application = "openmpi"))]
use crate::operations::buffered;
use crate::operations::messages::points;
use crate::operations::request::{self, Request, State};
use crate::operations::synchronous;

mod all;
mod any;
mod direct;
mod get_status;
mod list;
pub mod real_wait;
mod some;

pub use crate::operations::request::EMPTY;
pub use all::{testall, waitall};
pub use any::testany_failed;
pub use any::{testany, waitany};
pub use direct::{over_at_checkpoint, over_when_asked, told_when_waited};
pub use get_status::request_get_status;
#[cfg(not(application = "openmpi"))]
pub use get_status::{request_get_status_all, request_get_status_any, request_get_status_some};
pub use some::{testsome, waitsome};

/// Gives a status to the application, unless it is ignored; `MPI_ERROR` stays as it is.
///
/// # Safety
/// `to` must be ignored or writable.
#[inline(always)]
pub unsafe fn give(to: *mut abi::Status, status: &Status) {
    if abi::is_ignored(to) {
        return;
    }
    // SAFETY: `to` is not ignored, so it is writable by the caller's promise; its old error is only copied.
    unsafe {
        let error = (*to).error;
        *to = abi::Status::from_neutral(status);
        (*to).error = error;
    }
}

/// Gives a status with its error to the application: for calls that complete several.
///
/// # Safety
/// `to` must be ignored, or have more than `index` statuses.
unsafe fn give_whole(to: *mut abi::Status, index: usize, status: &Status) {
    if !abi::is_ignored(to) {
        // SAFETY: the statuses are not ignored, and there are more than `index`, by the caller's promise.
        unsafe { *to.add(index) = abi::Status::from_neutral(status) };
    }
}

/// Waits for a request and tells its end: its slot is free afterwards, unless it is persistent.
/// The operation's error is returned, `found` is its status.
///
/// # Safety
/// Inside a stub, nothing locked; `request` must be a live request.
pub unsafe fn wait_for(request: *mut Request, found: &mut Status) -> i32 {
    let mut interrupted = false;
    // SAFETY: the request is alive, by the caller's promise, and only this call ends it; `found` outlives the wait, which is over when the lower half returns.
    unsafe {
        if synchronous::is(request) {
            synchronous::until_over(request);
        }
        let code = loop {
            match (*request).state {
                State::Inactive => {
                    *found = EMPTY;
                    return 0;
                }
                State::Done => {
                    *found = (*request).status;
                    break found.error;
                }
                State::Active => {}
            }
            let word = &raw mut (*request).head.lower;
            let place: *mut Status = found;
            let code = cross_near(move |dispatch| (dispatch.extra.wait)(word, place));
            if code != INTERRUPTED {
                break code;
            }
            interrupted = true;
            points::blocked();
        };
        if interrupted {
            points::unblocked();
        }
        let told = request::complete(request, Some(found));
        if code == 0 { told.error } else { code }
    }
}

/// Runs the error handler of a request's communicator. `communicator` was read while the request lived.
unsafe fn fail(communicator: *mut Object, code: i32, name: &'static CStr) -> c_int {
    // SAFETY: inside a stub; null stands for none.
    unsafe { raise(communicator, code, name) }
}

/// `MPI_Wait`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn wait(request: PlaceOf<RequestHandle>, status: *mut abi::Status) -> c_int {
    // SAFETY: MPI demands a place that holds a handle, and a status that is ignored or writable.
    unsafe {
        if direct::wait(request, status) {
            return 0;
        }
        wait_long(request, status)
    }
}

/// `MPI_Wait` of a light receive has failed, or a restart has come.
///
/// # Safety
/// As the stub that has asked it, whose arguments these are; `code` is the real MPI's, which has filled the status.
pub unsafe extern "C" fn wait_failed(
    request: PlaceOf<RequestHandle>,
    status: *mut abi::Status,
    code: c_int,
) -> c_int {
    // SAFETY: the arguments are those of the application's `MPI_Wait`; the real MPI has filled the status before it returned `code`.
    unsafe {
        direct::failed_when_asked(request, code != AGAIN, status, code);
        wait_long(request, status)
    }
}

/// # Safety
/// As [`wait`].
#[cold]
#[inline(never)]
unsafe fn wait_long(request: PlaceOf<RequestHandle>, status: *mut abi::Status) -> c_int {
    // SAFETY: there is one handle at `request`, as MPI demands of `MPI_Wait`.
    #[cfg(not(application = "openmpi"))]
    unsafe {
        buffered::until_flushed(request, 1);
    }
    let _inside = crossing::enter();
    // SAFETY: `request::of` looks at the handle; the request is waited for by this thread only, as MPI demands.
    unsafe {
        let it = match request::of(request.get()) {
            Ok(Some(it)) => it,
            Ok(None) => {
                give(status, &EMPTY);
                return 0;
            }
            Err(code) => return fail(ptr::null_mut(), code, c"MPI_Wait"),
        };
        let communicator = (*it).communicator;
        let ends = (*it).flags & request::PERSISTENT == 0;
        let mut found = Status::default();
        let code = wait_for(it, &mut found);
        if ends {
            request.set(request::null());
        }
        give(status, &found);
        if code == 0 {
            0
        } else {
            fail(communicator, code, c"MPI_Wait")
        }
    }
}

/// `MPI_Test`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn test(
    request: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands a place that holds a handle, a writable flag, and a status that is ignored or writable.
    unsafe {
        if direct::test(request, flag, status) {
            return 0;
        }
        test_long(request, flag, status)
    }
}

/// `MPI_Test` of a light receive has failed.
///
/// # Safety
/// As the stub that has asked it, whose arguments these are.
pub unsafe extern "C" fn test_failed(
    request: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    status: *mut abi::Status,
    code: c_int,
) -> c_int {
    // SAFETY: the arguments are those of the application's `MPI_Test`; the real MPI has filled the status if it has looked at the request.
    unsafe {
        // Without a flag nothing has been looked at.
        direct::failed_when_asked(request, !flag.is_null(), status, code);
        test_long(request, flag, status)
    }
}

/// # Safety
/// As [`test`].
#[cold]
#[inline(never)]
unsafe fn test_long(
    request: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `request::of` looks at the handle; MPI demands a writable flag, and forbids that another thread completes the request meanwhile.
    unsafe {
        #[cfg(not(application = "openmpi"))]
        buffered::notice();
        let it = match request::of(request.get()) {
            Ok(Some(it)) if (*it).state != State::Inactive => it,
            Ok(_) => {
                *flag = 1;
                give(status, &EMPTY);
                return 0;
            }
            Err(code) => return fail(ptr::null_mut(), code, c"MPI_Test"),
        };
        if synchronous::is(it) {
            synchronous::ask(it);
            if synchronous::is(it) {
                *flag = 0;
                return 0;
            }
        }
        let mut found = Status::default();
        let mut code = 0;
        *flag = 1;
        if (*it).state == State::Done {
            found = (*it).status;
            code = found.error;
        } else {
            let word = &raw mut (*it).head.lower;
            let mut done = 0;
            code += cross_near(|dispatch| (dispatch.test)(word, &mut done, &mut found));
            if done == 0 && code == 0 {
                *flag = 0;
                return 0;
            }
        }
        let communicator = (*it).communicator;
        let told = request::complete(it, Some(&found));
        if told.ended {
            request.set(request::null());
        }
        if code == 0 {
            code = told.error;
        }
        give(status, &found);
        if code == 0 {
            0
        } else {
            fail(communicator, code, c"MPI_Test")
        }
    }
}
