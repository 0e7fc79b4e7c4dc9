//! Events of the tool interface: there are none.

use core::ffi::{c_char, c_int};

use crate::ground::abi;
use stillpoint_wrappers::standard;

/// # Safety
/// `place` must be null or writable.
unsafe fn none(place: *mut c_int) -> c_int {
    // SAFETY: `place` is null or writable, by the caller's promise.
    if let Some(place) = unsafe { place.as_mut() } {
        *place = 0;
    }
    0
}

/// `MPI_T_event_get_num`: there are no events, so nothing of them has to be carried.
///
/// # Safety
/// As the MPI function.
pub unsafe fn t_event_get_num(place: *mut c_int) -> c_int {
    // SAFETY: MPI demands a writable place, and `none` leaves out a null one.
    unsafe { none(place) }
}

/// `MPI_T_source_get_num`: there are none.
///
/// # Safety
/// As the MPI function.
pub unsafe fn t_source_get_num(place: *mut c_int) -> c_int {
    // SAFETY: MPI demands a writable place for the number of sources; a null one is left out.
    unsafe { none(place) }
}

/// `MPI_T_category_get_num_events`: no category has any.
///
/// # Safety
/// As the MPI function.
pub unsafe fn t_category_get_num_events(_category: c_int, place: *mut c_int) -> c_int {
    // SAFETY: MPI demands a writable place; `none` does not look at the category.
    unsafe { none(place) }
}

/// `MPI_T_category_get_events`: no category has any.
///
/// # Safety
/// None to keep.
pub unsafe fn t_category_get_events(_category: c_int, _most: c_int, _events: *mut c_int) -> c_int {
    0
}

/// `MPI_T_event_get_index`: none has any name.
///
/// # Safety
/// None to keep.
pub unsafe fn t_event_get_index(_name: *const c_char, _place: *mut c_int) -> c_int {
    abi::error_from_neutral(standard::T_ERR_INVALID_NAME)
}
