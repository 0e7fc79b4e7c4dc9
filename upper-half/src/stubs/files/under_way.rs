//! Pending operations on a file: nonblocking ones, and collective ones in two halves.

use std::ffi::{CStr, c_void};
use std::ptr;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::neutral::{self, Word};

use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::crossing::cross_near;
use crate::ground::hooks::note_call;
use crate::ground::object::File;
use crate::objects::file::{self, End, Split};
use crate::operations::clock::collective;
use crate::operations::request::{self, Kind};
use crate::stubs::steps;

/// Gives the application the request of an operation on a file.
///
/// # Safety
/// Inside a stub; `place` must be null or writable, `word` the request that the lower half has made.
pub unsafe fn begun(place: PlaceOf<RequestHandle>, word: Word) {
    // SAFETY: `place` is null or writable, and the word is a request of the lower half's that nothing else owns, by the caller's promise.
    unsafe {
        let request = if word == request::null_word() {
            request::null()
        } else {
            request::adopt(Kind::File, ptr::null_mut(), word)
        };
        steps::give(place, request);
    }
}

/// Notes a split collective operation that has begun on a file; `end` is the function that ends it.
///
/// # Safety
/// Inside a stub; the lower half has accepted the operation, so `file` is a live file.
pub unsafe fn split_begun(file: File, buffer: *const c_void, end: End) {
    // SAFETY: the lower half has accepted the operation, by the caller's promise, so the file is alive.
    if let Some(body) = unsafe { file::body(file) } {
        body.notes.lock().split = Some(Split::Begun(end, buffer.cast_mut()));
    }
}

/// Ends a split collective operation, unless a still point has: then the application is told of that.
///
/// # Safety
/// Inside a stub, as `StayKind::Collective`; `call` does nothing but call the lower half.
pub unsafe fn split_end(
    file: File,
    name: &'static CStr,
    status: &mut neutral::Status,
    call: impl FnOnce(&'static Dispatch, *mut neutral::Status) -> i32,
) -> i32 {
    // SAFETY: `has_clock` looks at the file before it is used; `status` is the caller's own, and `call` only calls the lower half.
    unsafe {
        if !steps::has_clock(file) {
            return cross_near(|lower| call(lower, status));
        }
        note_call(name);
        // A still point may come here, and no later.
        collective::begin((*file).clock);
        let split = file::body(file).and_then(|body| body.notes.lock().split.take());
        if let Some(Split::Ended(ended, code)) = split {
            *status = ended;
            return code;
        }
        cross_near(|lower| call(lower, status))
    }
}
