//! Functions of MPI-4 and MPI-5 that need only what MPI-3 has: for ABIs that have them.

use core::ffi::{CStr, c_int};
use core::ptr;

use crate::ground::abi::{Aint, Status};
use crate::ground::crossing;
use crate::objects::errhandler;
use crate::objects::outcome::class;

/// The version of the standard's ABI that this library has.
const VERSION: [c_int; 2] = [1, 0];

/// `MPI_Abi_get_version`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn abi_get_version(major: *mut c_int, minor: *mut c_int) -> c_int {
    // SAFETY: neither place is null when it is written; MPI demands that both are writable.
    unsafe {
        if major.is_null() || minor.is_null() {
            return wrong(c"MPI_Abi_get_version");
        }
        [*major, *minor] = VERSION;
    }
    0
}

/// `MPI_Aint_add`.
///
/// # Safety
/// None to keep.
pub unsafe fn aint_add(base: Aint, disp: Aint) -> Aint {
    base.wrapping_add(disp)
}

/// `MPI_Aint_diff`.
///
/// # Safety
/// None to keep.
pub unsafe fn aint_diff(addr1: Aint, addr2: Aint) -> Aint {
    addr1.wrapping_sub(addr2)
}

macro_rules! status {
    ($($field:ident: $get:ident $get_name:literal, $set:ident $set_name:literal;)*) => {$(
        /// Reads a field of a status.
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $get(status: *const Status, place: *mut c_int) -> c_int {
            // SAFETY: MPI demands a status and a writable place; null ones are refused.
            unsafe {
                match (status.as_ref(), place.as_mut()) {
                    (Some(status), Some(place)) => *place = status.$field,
                    _ => return wrong($get_name),
                }
            }
            0
        }

        /// Writes a field of a status.
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $set(status: *mut Status, value: c_int) -> c_int {
            // SAFETY: MPI demands a status that the application alone has; a null one is refused.
            unsafe {
                match status.as_mut() {
                    Some(status) => status.$field = value,
                    None => return wrong($set_name),
                }
            }
            0
        }
    )*};
}

status! {
    source: status_get_source c"MPI_Status_get_source", status_set_source c"MPI_Status_set_source";
    tag: status_get_tag c"MPI_Status_get_tag", status_set_tag c"MPI_Status_set_tag";
    error: status_get_error c"MPI_Status_get_error", status_set_error c"MPI_Status_set_error";
}

/// Raises the error of a missing status or place.
unsafe fn wrong(name: &'static CStr) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: inside; no object is named.
    unsafe { errhandler::raise(ptr::null_mut(), class::ARG, name) }
}
