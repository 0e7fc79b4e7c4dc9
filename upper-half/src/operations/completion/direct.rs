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
    // SAFETY: the caller's.
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
#[cold]
#[inline(never)]
unsafe fn not_over(request: *mut Request, code: c_int, status: *const abi::Status) {
    if code != AGAIN {
        // SAFETY: the caller's request and status.
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
        // SAFETY: the caller's.
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
    // SAFETY: the caller's request and status.
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
    // SAFETY: the caller's request.
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

#[cold]
#[inline(never)]
unsafe fn end_whole(request: *mut Request) {
    // SAFETY: the caller's request.
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

#[cold]
#[inline(never)]
unsafe fn failed(request: *mut Request, code: c_int, status: *const abi::Status) {
    // SAFETY: the caller's status, which the real MPI has filled.
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
    // SAFETY: the caller's.
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
    // SAFETY: the caller's.
    unsafe { told_of_send(handle, status) };
    0
}

/// `MPI_Wait`. Returns false if the call has to go the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn wait(handle: PlaceOf<RequestHandle>, status: *mut abi::Status) -> bool {
    // SAFETY: the application's request and status.
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
    // SAFETY: the application's request and status.
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
    // SAFETY: the application's request, flag and status.
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
    // SAFETY: the caller's.
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
    // SAFETY: the caller's.
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
    // SAFETY: the caller's.
    unsafe {
        if looked {
            crossing::marked(|| failed(handle.get().cast(), code, status));
        }
    }
}
