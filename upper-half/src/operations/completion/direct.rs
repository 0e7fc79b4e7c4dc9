//! The short way of completion calls: plain requests of a thread that may call the real MPI directly.
//!
//! A wait is the real MPI's if that calls back ([`real_wait`](super::real_wait)). Otherwise the real `MPI_Test` asks a request for its end, until it is over or
//! a checkpoint is pending. Both get the application's own place for the status. Every unusual request is left to the long way, which finds it as it was, or
//! done, if it has failed.
//!
//! A request is looked at within the stay in which the real MPI is asked: before that, a checkpoint might change its form.

use core::ffi::c_int;

use stillpoint_wrappers::gate::AGAIN;
use stillpoint_wrappers::neutral;

use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::crossing;
use crate::ground::{abi, arch};
use crate::operations::completion::{EMPTY, give, real_wait};
use crate::operations::direct;
use crate::operations::request::{self, Kind, Request, light, over};

mod asked;
mod several;
mod waitall;

pub use several::{all, any, some};
pub use waitall::waitall;

/// The answer of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It was over, its message is counted, its slot is free.
    Over,
    NotYet,
    /// It is done above, with its error.
    Failed,
}

/// Waits for a plain request. Returns false if it did not, because a checkpoint is pending or the request has failed.
///
/// # Safety
/// As [`ask`].
#[inline(always)]
unsafe fn wait_for(request: *mut Request, status: *mut abi::Status) -> bool {
    // SAFETY: the caller promises a stay, a plain request and a status that is ignored or writable; `own::wait`, `ask` and `ask_on` demand no more.
    let answer = unsafe {
        if real_wait::possible() {
            let code = real_wait::wait(&raw mut (*request).head.lower, status);
            if !arch::is_success(code) {
                not_over(request, code, status);
                return false;
            }
            end(request);
            return true;
        }
        match ask(request, status) {
            Answer::NotYet => ask_on(request, status),
            answer => answer,
        }
    };
    answer == Answer::Over
}

/// A wait of the real MPI's has returned that code.
///
/// # Safety
/// As [`ask`], and the real MPI has just returned `code` for the request.
#[cold]
#[inline(never)]
unsafe fn not_over(request: *mut Request, code: c_int, status: *const abi::Status) {
    if code != AGAIN {
        // SAFETY: `request` is still the plain one that was waited for, and the real MPI has filled `status` if it is not ignored.
        unsafe { failed(request, code, status) };
    }
}

/// Asks again for a request that was not over at once, until it is or a checkpoint is pending. Kept out of the way of the others.
///
/// # Safety
/// As [`ask`].
#[cold]
#[inline(never)]
unsafe fn ask_on(request: *mut Request, status: *mut abi::Status) -> Answer {
    loop {
        if arch::gate_pending() {
            return Answer::NotYet;
        }
        // SAFETY: the stay, the plain request and the status are those that the caller promises, and stay so between two questions.
        let answer = unsafe { ask(request, status) };
        if answer != Answer::NotYet {
            return answer;
        }
    }
}

/// Asks a plain request once.
///
/// # Safety
/// In a stay of the short way; `request` must be plain, `status` ignored or writable.
#[inline(always)]
unsafe fn ask(request: *mut Request, status: *mut abi::Status) -> Answer {
    let mut over = 0;
    // SAFETY: `request` is plain by the caller's promise, so its word is the real MPI's, which fills a status that is not ignored before it returns an error.
    unsafe {
        let code = (direct::table().test)(&raw mut (*request).head.lower, &mut over, status.cast());
        if code != 0 {
            failed(request, code, status);
            return Answer::Failed;
        }
        if over == 0 {
            return Answer::NotYet;
        }
        end(request);
        Answer::Over
    }
}

/// Ends a plain request that is over below: its message is counted.
///
/// # Safety
/// In a stay of the short way; `request` must be plain.
#[inline(always)]
unsafe fn end(request: *mut Request) {
    // SAFETY: the caller promises a plain request, which has one of these three forms; each branch ends the form that it has tested.
    unsafe {
        if light::Form::of(request.cast()).is_light() {
            light::end(request);
        } else if request::brief::is(request) {
            request::brief::end(request);
        } else {
            end_whole(request);
        }
    }
}

/// # Safety
/// As [`end`], for a whole request.
#[cold]
#[inline(never)]
unsafe fn end_whole(request: *mut Request) {
    // SAFETY: `request` is a whole, plain one that is over below, as `end` has found; no other thread ends it within the stay.
    unsafe {
        match (*request).kind {
            Kind::Collective => {
                // An operation that fails at its end goes the long way.
                let _ = request::complete(request, None);
            }
            kind => {
                if kind == Kind::Receive {
                    arch::count_received();
                }
                request::end_alone(request);
            }
        }
    }
}

/// # Safety
/// As [`end`]; `status` must be ignored, or have been filled by the real MPI.
#[cold]
#[inline(never)]
unsafe fn failed(request: *mut Request, code: c_int, status: *const abi::Status) {
    // SAFETY: a status that is not ignored was filled by the real MPI when it returned `code`; `request` is plain, and nothing is active for it below.
    unsafe {
        let mut status = if abi::is_ignored(status) {
            neutral::Status::default()
        } else {
            (*status).to_neutral()
        };
        status.error = direct::error(code);
        request::finish(request, &status);
    }
}

/// Tells the application of a send that was over at once.
///
/// # Safety
/// The application's places.
#[inline(always)]
unsafe fn told_of_send(handle: PlaceOf<RequestHandle>, status: *mut abi::Status) {
    // SAFETY: both places are the application's own, which MPI demands to be writable (the status: or ignored).
    unsafe {
        handle.set(request::null());
        give(status, &EMPTY);
    }
}

/// `MPI_Wait` of a send that was over at once.
///
/// # Safety
/// The application's places.
pub unsafe extern "C" fn told_when_waited(
    handle: PlaceOf<RequestHandle>,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: the arguments are those of the application's `MPI_Wait`: a handle's place, and a status that is ignored or writable.
    unsafe { told_of_send(handle, status) };
    0
}

/// `MPI_Wait`. Returns false if the call has to go the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn wait(handle: PlaceOf<RequestHandle>, status: *mut abi::Status) -> bool {
    // SAFETY: MPI demands a place that holds a handle, and a status that is ignored or writable.
    unsafe {
        if over::is(handle.get()) {
            told_of_send(handle, status);
            return true;
        }
        direct::open() && wait_plain(handle, status)
    }
}

/// [`wait`] for a plain request.
///
/// # Safety
/// As the MPI function; the way must be open.
#[inline(always)]
unsafe fn wait_plain(handle: PlaceOf<RequestHandle>, status: *mut abi::Status) -> bool {
    // SAFETY: `handle` holds one of MPI's handles; `plain` looks at it within the stay, so no checkpoint changes its form before `wait_for` ends it.
    unsafe {
        let stay = direct::enter();
        let Some(request) = request::plain(handle.get()) else {
            stay.go_back();
            return false;
        };
        if !wait_for(request, status) {
            stay.go_back();
            return false;
        }
        handle.set(request::null());
        real_wait::leave(stay);
    }
    true
}

/// `MPI_Test`. Returns false if the call has to go the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn test(
    handle: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> bool {
    // SAFETY: MPI demands a place that holds a handle, a writable flag and a status that is ignored or writable; the real MPI returns an error if the flag is
    // null.
    unsafe {
        if !direct::open() {
            return false;
        }
        let stay = direct::enter();
        let Some(request) = request::plain(handle.get()) else {
            stay.go_back();
            if over::is(handle.get()) {
                told_of_send(handle, status);
                *flag = 1;
                return true;
            }
            return false;
        };
        let word = &raw mut (*request).head.lower;
        let code = (direct::table().test)(word, flag, status.cast());
        if !arch::is_success(code) {
            // Without a flag nothing has been looked at.
            if !flag.is_null() {
                failed(request, code, status);
            }
            stay.go_back();
            return false;
        }
        if *flag != 0 {
            end(request);
            handle.set(request::null());
        }
        true
    }
}

/// A light receive that was asked for its end is over.
///
/// # Safety
/// At the end of the stub that has asked it; the application's place.
pub unsafe extern "C" fn over_when_asked(handle: PlaceOf<RequestHandle>) -> c_int {
    // SAFETY: the handle at that place led to a light receive when the stub looked, and the stub has not let go of it since; the thread has a record.
    unsafe {
        crossing::marked(|| {
            // It was light when it was looked at.
            end(handle.get().cast());
            handle.set(request::null());
        });
    }
    0
}

/// A light receive that was waited for is over, and a checkpoint is pending.
///
/// # Safety
/// As [`over_when_asked`].
pub unsafe extern "C" fn over_at_checkpoint(handle: PlaceOf<RequestHandle>) -> c_int {
    // SAFETY: the caller promises what `over_when_asked` demands; the thread is at the end of its stub, where it may park.
    unsafe { over_when_asked(handle) };
    real_wait::park();
    0
}

/// A light receive that was asked for its end, if it was `looked` at, has failed; the stub has to begin anew.
///
/// # Safety
/// As [`over_when_asked`]; `code` is the real MPI's, which has filled the status.
pub unsafe fn failed_when_asked(
    handle: PlaceOf<RequestHandle>,
    looked: bool,
    status: *const abi::Status,
    code: c_int,
) {
    // SAFETY: the caller promises a handle that led to a light receive, and a status that the real MPI has filled.
    unsafe {
        if looked {
            crossing::marked(|| failed(handle.get().cast(), code, status));
        }
    }
}
