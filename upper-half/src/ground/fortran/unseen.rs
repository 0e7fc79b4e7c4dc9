//! Objects that no Fortran layer looks into: nothing is laid out in them, and functions are C's.

use std::ffi::{c_char, c_int, c_void};

use crate::ground::object::Object;

/// Nothing to lay out.
///
/// # Safety
/// None to keep.
pub unsafe fn mirror(_object: *mut Object) {}

/// Nothing to note.
///
/// # Safety
/// None to keep.
pub unsafe fn renumber(_object: *mut Object, _number: i32) {}

/// Nothing to lay out.
///
/// # Safety
/// None to keep.
pub unsafe fn mirror_groups(_object: *mut Object, _local: i32, _remote: Option<i32>) {}

/// A generalized request's functions are C's.
///
/// # Safety
/// None to keep.
pub unsafe fn is_in_c(_request: *mut Object) -> bool {
    true
}

/// An operator's function takes C's arguments.
///
/// # Safety
/// None to keep.
pub unsafe fn takes_fortran(_operator: *mut Object) -> bool {
    false
}

/// There are no C++ bindings.
///
/// # Safety
/// None to keep.
pub unsafe fn call_cxx_handler(
    _handler: *mut Object,
    _object: *mut Object,
    _error: c_int,
    _name: *const c_char,
    _function: usize,
) {
}

/// There are no C++ bindings.
///
/// # Safety
/// None to keep.
pub unsafe fn call_cxx_operator<H>(
    _intercept: usize,
    _vectors: (*mut c_void, *mut c_void),
    _count: *mut c_int,
    _datatype: *mut H,
    _function: usize,
) {
}
