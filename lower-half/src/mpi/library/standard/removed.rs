//! Functions that MPI-3 has removed but programs of an older ABI still call: their replacements, under the old names.

#![allow(non_snake_case, reason = "MPI's names")]

use stillpoint_wrappers::neutral::Word;

use super::ffi;

pub use super::ffi::{
    MPI_Comm_get_errhandler as MPI_Errhandler_get, MPI_Comm_set_errhandler as MPI_Errhandler_set,
    MPI_Get_address as MPI_Address, MPI_Type_create_hindexed as MPI_Type_hindexed,
    MPI_Type_create_hvector as MPI_Type_hvector, MPI_Type_create_struct as MPI_Type_struct,
};

/// # Safety
/// As the MPI function.
pub unsafe fn MPI_Type_extent(datatype: Word, extent: *mut isize) -> i32 {
    let mut lower = 0;
    // SAFETY: the caller gives a place for the extent, as for the MPI function; the other place lives on this stack.
    unsafe { ffi::MPI_Type_get_extent(datatype, &raw mut lower, extent) }
}

/// # Safety
/// As the MPI function.
pub unsafe fn MPI_Type_lb(datatype: Word, place: *mut isize) -> i32 {
    let mut extent = 0;
    // SAFETY: the caller gives a place for the lower bound, as for the MPI function; the other place lives on this stack.
    unsafe { ffi::MPI_Type_get_extent(datatype, place, &raw mut extent) }
}

/// # Safety
/// As the MPI function.
pub unsafe fn MPI_Type_ub(datatype: Word, place: *mut isize) -> i32 {
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: the caller gives a place for the upper bound, as for the MPI function; the other places live on this stack.
    unsafe {
        let code = ffi::MPI_Type_get_extent(datatype, &raw mut lower, &raw mut extent);
        if code == 0 {
            *place = lower + extent;
        }
        code
    }
}
