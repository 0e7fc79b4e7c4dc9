//! The short way of completion calls: plain requests of a thread that may call the real MPI directly.
//!
//! A request is asked for its end, by the real `MPI_Test` with the application's own place for the status. Whatever is out
//! of the ordinary is left to the long way, which finds the request as it was - or done, if it has failed.

use core::ffi::c_int;

use stillpoint_wrappers::neutral;

use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::object::Object;
use crate::ground::{abi, arch};
use crate::operations::direct;
use crate::operations::request::{self, Kind, Request};

mod several;

pub use several::{all, any, one, some};

/// What a request answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It was over, its message is counted, its slot is free.
    Over,
    NotYet,
    /// It is done above, with its error.
    Failed,
}

/// Asks a plain request until it is over, or a checkpoint is pending and it is not.
///
/// # Safety
/// As [`ask`].
#[inline(always)]
unsafe fn wait_for(request: *mut Request, status: *mut abi::Status) -> Answer {
    // SAFETY: the caller's.
    unsafe {
        match ask(request, status) {
            Answer::NotYet => ask_on(request, status),
            answer => answer,
        }
    }
}

/// [`wait_for`] of a request that was not over at once: out of the way of those that are.
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
        if request::brief::is(request) {
            return request::brief::end(request);
        }
        match (*request).kind {
            Kind::Collective => {
                request::complete(request, None);
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
        status.error = abi::error_to_neutral(code);
        request::finish(request, &status);
    }
}

/// `MPI_Wait`; false: to be done the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn wait(handle: PlaceOf<RequestHandle>, status: *mut abi::Status) -> bool {
    // SAFETY: the application's request and status.
    unsafe {
        if !direct::open() {
            return false;
        }
        let Some(request) = request::plain(handle.get()) else {
            return false;
        };
        let stay = direct::enter();
        if wait_for(request, status) != Answer::Over {
            stay.go_back();
            return false;
        }
        handle.set(request::null());
    }
    true
}

/// `MPI_Test`; false: to be done the long way.
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
        let Some(request) = request::plain(handle.get()) else {
            return false;
        };
        let stay = direct::enter();
        match ask(request, status) {
            Answer::Over => {
                handle.set(request::null());
                *flag = 1;
            }
            Answer::NotYet => *flag = 0,
            Answer::Failed => {
                stay.go_back();
                return false;
            }
        }
        true
    }
}

/// `MPI_Waitall`, from the first request on: how many of them it has completed, without an error. The rest is to be done the
/// long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn waitall(
    count: usize,
    handles: PlaceOf<RequestHandle>,
    statuses: *mut abi::Status,
) -> usize {
    if !direct::open() {
        return 0;
    }
    let null: *mut Object = request::null();
    // SAFETY: the application's arrays.
    unsafe {
        let stay = direct::enter();
        for index in 0..count {
            let handle = handles.add(index);
            let status = if abi::is_ignored(statuses) {
                statuses
            } else {
                statuses.add(index)
            };
            let Some(request) = request::plain(handle.get()) else {
                if handle.get() == null {
                    super::give_whole(status, 0, &super::EMPTY);
                    continue;
                }
                stay.go_back();
                return index;
            };
            if wait_for(request, status) != Answer::Over {
                stay.go_back();
                return index;
            }
            handle.set(null);
            if !abi::is_ignored(status) {
                (*status).error = 0;
            }
        }
    }
    count
}
