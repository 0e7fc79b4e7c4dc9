//! Attributes of MPI: converts the values of predefined keyvals to neutral ones.
//!
//! An attribute's value is an address. If it leads to an integer with a special meaning, the caller gets the address of a converted copy, which is valid on its
//! thread until its next query.

use core::ffi::c_void;
use std::cell::Cell;

use super::library::{abi, error_to_neutral, ffi};
use stillpoint_wrappers::neutral::Word;

use super::convert;

/// Standard-ABI values of the keyvals whose values need converting.
const IO: i32 = 502;
const HOST: i32 = 503;
const LAST_USED_CODE: i32 = 506;
const WIN_CREATE_FLAVOR: i32 = 604;
const WIN_MODEL: i32 = 605;

thread_local! {
    static COPY: Cell<i32> = const { Cell::new(0) };
}

/// Points `place` to a neutral copy of the integer that it points to.
///
/// # Safety
/// `place` must hold the value of the predefined attribute `keyval`, as MPI gave it.
unsafe fn convert(keyval: i32, place: *mut c_void) {
    let to_neutral: fn(i32) -> i32 = match keyval {
        IO | HOST => abi::rank_to_neutral,
        LAST_USED_CODE => abi::error_to_neutral,
        WIN_CREATE_FLAVOR => abi::flavor_to_neutral,
        WIN_MODEL => abi::model_to_neutral,
        _ => return,
    };
    let place: *mut *const i32 = place.cast();
    // SAFETY: the caller gives the place that MPI has written; these attributes' values are pointers to integers (MPI 5.0, sections 9.1.2, 12.2.6).
    unsafe {
        COPY.set(to_neutral(**place));
        *place = COPY.with(Cell::as_ptr);
    }
}

/// # Safety
/// As for `MPI_Comm_get_attr`.
pub unsafe extern "C" fn comm_get_attr(
    comm: Word,
    comm_keyval: i32,
    attribute_val: *mut c_void,
    flag: *mut i32,
) -> i32 {
    // SAFETY: the stub passes what `MPI_Comm_get_attr` takes; if the flag is set, MPI has written the attribute's value to the place.
    unsafe {
        let keyval = abi::keyval_from_neutral(comm_keyval);
        let code = ffi::MPI_Comm_get_attr(convert::handle(comm), keyval, attribute_val, flag);
        if code == 0 && *flag != 0 {
            convert(comm_keyval, attribute_val);
        }
        error_to_neutral(code)
    }
}

/// # Safety
/// As for `MPI_Comm_get_attr`.
pub unsafe extern "C" fn attr_get(
    comm: Word,
    keyval: i32,
    attribute_val: *mut c_void,
    flag: *mut i32,
) -> i32 {
    // SAFETY: this is the same function under its older name, with the same arguments.
    unsafe { comm_get_attr(comm, keyval, attribute_val, flag) }
}

/// # Safety
/// As for `MPI_Win_get_attr`.
pub unsafe extern "C" fn win_get_attr(
    win: Word,
    win_keyval: i32,
    attribute_val: *mut c_void,
    flag: *mut i32,
) -> i32 {
    // SAFETY: the stub passes what `MPI_Win_get_attr` takes; if the flag is set, MPI has written the attribute's value to the place.
    unsafe {
        let keyval = abi::keyval_from_neutral(win_keyval);
        let code = ffi::MPI_Win_get_attr(convert::handle(win), keyval, attribute_val, flag);
        if code == 0 && *flag != 0 {
            convert(win_keyval, attribute_val);
        }
        error_to_neutral(code)
    }
}
