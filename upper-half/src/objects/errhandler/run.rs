//! The frame of a hand-written stub: the stay inside MPI, and the error handler at its end.

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;

use super::{outside, raise};
use crate::ground::crossing;
use crate::ground::hooks::note_call;
use crate::ground::object::Object;
use crate::objects::outcome::MpiResult;

/// Runs a stub's body inside MPI and raises its error on `object` (null: on `MPI_COMM_WORLD`).
///
/// # Safety
/// On a thread of the application; `object` must be null or lead to an object.
#[inline]
pub unsafe fn run(
    object: *mut Object,
    function: &'static CStr,
    body: impl FnOnce() -> MpiResult,
) -> c_int {
    let _inside = crossing::enter();
    note_call(function);
    // SAFETY: the thread is inside from here on; `object` is null or leads to an object, by the caller's promise.
    unsafe {
        if crossing::gate().mpi_active.load(Ordering::Relaxed) == 0 && !may_come_early(function) {
            return outside(function);
        }
        match body() {
            Ok(()) => 0,
            Err(error) => raise(object, error, function),
        }
    }
}

/// Whether a function needs no MPI (MPI 5.0, section 11.4.1): Open MPI 4 has no sessions, for which some need none.
#[cold]
fn may_come_early(function: &CStr) -> bool {
    let early = [
        "MPI_Error_class",
        "MPI_Error_string",
        "MPI_Info_",
        "MPI_Session_create_errhandler",
        "MPI_Errhandler_free",
    ];
    let is_early = |name: &&str| function.to_bytes().starts_with(name.as_bytes());
    cfg!(not(application = "openmpi")) && early.iter().any(is_early)
}
