//! Predefined callbacks under the names that Fortran compilers and `mpi.h` give them, and small functions of extensions.

use core::ffi::{c_char, c_int, c_void};

use crate::ground::abi::{Aint, Fint};
use crate::stubs::extensions::{copy_as_it_is, takes_gpus};

/// Exports a function under the four names that Fortran compilers may give it.
macro_rules! for_fortran {
    ($($body:ident($($parameter:ident: $kind:ty),*): $upper:ident $lower:ident $one:ident $two:ident;)*) => {
        $(for_fortran!(@ $body($($parameter: $kind),*): $upper $lower $one $two);)*
    };
    (@ $body:ident $parameters:tt: $($name:ident)*) => {
        $(for_fortran!(@@ $body $parameters $name);)*
    };
    (@@ $body:ident($($parameter:ident: $kind:ty),*) $name:ident) => {
        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameter: $kind),*) {
            // SAFETY: Fortran code calls it as the library's own.
            unsafe { $body($($parameter),*) }
        }
    };
}

for_fortran! {
    dup(_o: *const Fint, _k: *const Fint, _e: *const Aint, value: *const Aint, copy: *mut Aint, flag: *mut Fint, error: *mut Fint):
        MPI_COMM_DUP_FN mpi_comm_dup_fn mpi_comm_dup_fn_ mpi_comm_dup_fn__;
    dup(_o: *const Fint, _k: *const Fint, _e: *const Aint, value: *const Aint, copy: *mut Aint, flag: *mut Fint, error: *mut Fint):
        MPI_TYPE_DUP_FN mpi_type_dup_fn mpi_type_dup_fn_ mpi_type_dup_fn__;
    dup(_o: *const Fint, _k: *const Fint, _e: *const Aint, value: *const Aint, copy: *mut Aint, flag: *mut Fint, error: *mut Fint):
        MPI_WIN_DUP_FN mpi_win_dup_fn mpi_win_dup_fn_ mpi_win_dup_fn__;
    old_dup(_o: *const Fint, _k: *const Fint, _e: *const Fint, value: *const Fint, copy: *mut Fint, flag: *mut Fint, error: *mut Fint):
        MPI_DUP_FN mpi_dup_fn mpi_dup_fn_ mpi_dup_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_COMM_NULL_COPY_FN mpi_comm_null_copy_fn mpi_comm_null_copy_fn_ mpi_comm_null_copy_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_TYPE_NULL_COPY_FN mpi_type_null_copy_fn mpi_type_null_copy_fn_ mpi_type_null_copy_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_WIN_NULL_COPY_FN mpi_win_null_copy_fn mpi_win_null_copy_fn_ mpi_win_null_copy_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_NULL_COPY_FN mpi_null_copy_fn mpi_null_copy_fn_ mpi_null_copy_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_COMM_NULL_DELETE_FN mpi_comm_null_delete_fn mpi_comm_null_delete_fn_ mpi_comm_null_delete_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_TYPE_NULL_DELETE_FN mpi_type_null_delete_fn mpi_type_null_delete_fn_ mpi_type_null_delete_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_WIN_NULL_DELETE_FN mpi_win_null_delete_fn mpi_win_null_delete_fn_ mpi_win_null_delete_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_NULL_DELETE_FN mpi_null_delete_fn mpi_null_delete_fn_ mpi_null_delete_fn__;
    no_conversion(_u: *mut c_void, _t: *const Fint, _c: *const Fint, _f: *mut c_void, _p: *const i64, _e: *mut Aint, error: *mut Fint):
        MPI_CONVERSION_FN_NULL mpi_conversion_fn_null mpi_conversion_fn_null_ mpi_conversion_fn_null__;
    add(base: *const Aint, displacement: *const Aint, sum: *mut Aint):
        MPI_AINT_ADD_F90 mpi_aint_add_f90 mpi_aint_add_f90_ mpi_aint_add_f90__;
    difference(one: *const Aint, other: *const Aint, result: *mut Aint):
        MPI_AINT_DIFF_F90 mpi_aint_diff_f90 mpi_aint_diff_f90_ mpi_aint_diff_f90__;
    wtime(place: *mut f64): MPI_WTIME_F90 mpi_wtime_f90 mpi_wtime_f90_ mpi_wtime_f90__;
    wtick(place: *mut f64): MPI_WTICK_F90 mpi_wtick_f90 mpi_wtick_f90_ mpi_wtick_f90__;
}

/// The predefined callbacks under their names in C, for communicators, datatypes and windows alike.
macro_rules! for_c {
    ($($copy_all:ident $copy_none:ident $delete_none:ident;)*) => {$(
        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $copy_all(
            _object: *mut c_void,
            _keyval: c_int,
            _extra: *mut c_void,
            value: *mut c_void,
            copy: *mut *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: an attribute's copy function gets places for all that it answers.
            unsafe { copy_as_it_is(value, copy, flag) }
        }

        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $copy_none(
            _object: *mut c_void,
            _keyval: c_int,
            _extra: *mut c_void,
            _value: *mut c_void,
            _copy: *mut *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: an attribute's copy function gets places for all that it answers.
            unsafe { *flag = 0 };
            0
        }

        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        extern "C" fn $delete_none(
            _object: *mut c_void,
            _keyval: c_int,
            _value: *mut c_void,
            _extra: *mut c_void,
        ) -> c_int {
            0
        }
    )*};
}

for_c! {
    OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_DELETE_FN;
    OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN;
    OMPI_C_MPI_WIN_DUP_FN OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_DELETE_FN;
    OMPI_C_MPI_DUP_FN OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_NULL_DELETE_FN;
}

/// `OMPI_Affinity_str`: this library knows nothing of hardware, and an application's knowledge of it would be wrong after a restart elsewhere.
///
/// # Safety
/// As Open MPI's function.
#[allow(non_snake_case)] // The library's name.
#[unsafe(no_mangle)]
unsafe extern "C" fn OMPI_Affinity_str(
    _format: c_int,
    bound: *mut c_char,
    now: *mut c_char,
    there: *mut c_char,
) -> c_int {
    for place in [bound, now, there] {
        // SAFETY: the caller gives room for three texts.
        unsafe { *place = 0 };
    }
    0
}

const SUCCESS: Fint = 0;
/// `.true.` and `.false.`, as gfortran and the library have them.
const TRUE: Fint = 1;
const FALSE: Fint = 0;

unsafe fn dup(
    _object: *const Fint,
    _keyval: *const Fint,
    _extra: *const Aint,
    value: *const Aint,
    copy: *mut Aint,
    flag: *mut Fint,
    error: *mut Fint,
) {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe {
        *flag = TRUE;
        *copy = *value;
        *error = SUCCESS;
    }
}

unsafe fn old_dup(
    _object: *const Fint,
    _keyval: *const Fint,
    _extra: *const Fint,
    value: *const Fint,
    copy: *mut Fint,
    flag: *mut Fint,
    error: *mut Fint,
) {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe {
        *flag = TRUE;
        *copy = *value;
        *error = SUCCESS;
    }
}

unsafe fn no_copy(
    _object: *const Fint,
    _keyval: *const Fint,
    _extra: *const c_void,
    _value: *const c_void,
    _copy: *mut c_void,
    flag: *mut Fint,
    error: *mut Fint,
) {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe {
        *flag = FALSE;
        *error = SUCCESS;
    }
}

unsafe fn delete(
    _object: *const Fint,
    _keyval: *const Fint,
    _value: *const c_void,
    _extra: *const c_void,
    error: *mut Fint,
) {
    // SAFETY: an attribute's delete function gets a place for its error.
    unsafe { *error = SUCCESS }
}

/// MPI knows the function by its address, and does not call it.
unsafe fn no_conversion(
    _user: *mut c_void,
    _datatype: *const Fint,
    _count: *const Fint,
    _file: *mut c_void,
    _position: *const i64,
    _extra: *mut Aint,
    error: *mut Fint,
) {
    // SAFETY: a conversion function gets a place for its error.
    unsafe { *error = SUCCESS }
}

unsafe fn add(base: *const Aint, displacement: *const Aint, sum: *mut Aint) {
    // SAFETY: Fortran gives three variables.
    unsafe { *sum = (*base).wrapping_add(*displacement) }
}

unsafe fn difference(one: *const Aint, other: *const Aint, result: *mut Aint) {
    // SAFETY: Fortran gives three variables.
    unsafe { *result = (*one).wrapping_sub(*other) }
}

unsafe extern "C" {
    safe fn PMPI_Wtime() -> f64;
    safe fn PMPI_Wtick() -> f64;
}

unsafe fn wtime(place: *mut f64) {
    // SAFETY: Fortran gives a variable.
    unsafe { *place = PMPI_Wtime() }
}

unsafe fn wtick(place: *mut f64) {
    // SAFETY: Fortran gives a variable.
    unsafe { *place = PMPI_Wtick() }
}

/// Whether Open MPI itself takes a GPU's memory.
#[allow(non_snake_case)] // The library's name.
#[unsafe(no_mangle)]
extern "C" fn MPIX_Query_cuda_support() -> c_int {
    takes_gpus(0)
}
