//! The frame of a hand-written stub: the stay inside MPI, and the error handler at its end.

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;

use super::{outside, raise};
use crate::ground::crossing;
use crate::ground::hooks::note_call;
use crate::ground::object::Object;
use crate::objects::outcome::Outcome;

/// Runs a stub's body inside MPI and raises its error on `object` (null: on `MPI_COMM_WORLD`).
///
/// # Safety
/// On a thread of the application; `object` must be null or lead to an object.
#[inline]
pub unsafe fn run(
    object: *mut Object,
    function: &'static CStr,
    body: impl FnOnce() -> Outcome,
) -> c_int {
    let _inside = crossing::enter();
    note_call(function);
    // SAFETY: inside; the caller's object.
    unsafe {
        if crossing::gate().mpi_active.load(Ordering::Relaxed) == 0 {
            return outside(function);
        }
        match body() {
            Ok(()) => 0,
            Err(error) => raise(object, error, function),
        }
    }
}
