// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::ffi::{c_char, c_int, c_void};
use crate::ground::abi::{Fint, Status};
use crate::ground::object::Object;
use crate::stubs::fortran;

/// Of the C++ bindings, whose functions have C's types.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_create_keyval(
    kind: c_int,
    copy: usize,
    delete: usize,
    place: *mut c_int,
    extra: *mut c_void,
    flags: c_int,
    bindings: *mut c_void,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_create_keyval(kind, copy, delete, place, extra, flags, bindings) }
}

/// `MPI_KEYVAL_CREATE`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_create_keyval_fint(
    kind: c_int,
    copy: usize,
    delete: usize,
    place: *mut c_int,
    extra: Fint,
    flags: c_int,
    bindings: *mut c_void,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_create_keyval_fint(kind, copy, delete, place, extra, flags, bindings) }
}

/// `MPI_COMM_CREATE_KEYVAL` and its like.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_create_keyval_aint(
    kind: c_int,
    copy: usize,
    delete: usize,
    place: *mut c_int,
    extra: isize,
    flags: c_int,
    bindings: *mut c_void,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_create_keyval_aint(kind, copy, delete, place, extra, flags, bindings) }
}

/// `ompi_attr_set_fint`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_set_fint(
    kind: c_int,
    object: *mut Object,
    table: *mut *mut Object,
    number: c_int,
    value: Fint,
    predefined: bool,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_set_fint(kind, object, table, number, value, predefined) }
}

/// `ompi_attr_set_aint`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_set_aint(
    kind: c_int,
    object: *mut Object,
    table: *mut *mut Object,
    number: c_int,
    value: isize,
    predefined: bool,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_set_aint(kind, object, table, number, value, predefined) }
}

/// `ompi_attr_get_fint`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_get_fint(
    table: *mut Object,
    number: c_int,
    value: *mut Fint,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_get_fint(table, number, value, flag) }
}

/// `ompi_attr_get_aint`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_attr_get_aint(
    table: *mut Object,
    number: c_int,
    value: *mut isize,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::attr_get_aint(table, number, value, flag) }
}

/// `kind` is the object's, `language` the function's.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_errhandler_create(
    kind: c_int,
    function: usize,
    language: c_int,
) -> *mut Object {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::errhandler_create(kind, function, language) }
}

/// An error that the layer itself has found.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_errhandler_invoke(
    handler: *mut Object,
    object: *mut Object,
    kind: c_int,
    error: c_int,
    message: *const c_char,
) -> c_int {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::errhandler_invoke(handler, object, kind, error, message) }
}

/// Called for a function before MPI has started.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_mpi_errors_are_fatal_comm_handler(
    object: *mut *mut Object,
    error: *mut c_int,
    message: *const c_char,
) {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::mpi_errors_are_fatal_comm_handler(object, error, message) }
}

/// The datatype of a class and size; the null datatype if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_datatype_match_size(
    size: c_int,
    kind: u16,
    language: u16,
) -> *mut Object {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::datatype_match_size(size, kind, language) }
}

/// The operator was made with what calls `function`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_op_set_cxx_callback(object: *mut Object, function: usize) {
    // SAFETY: the library's layers call it as the library's own.
    unsafe { fortran::op_set_cxx_callback(object, function) }
}

/// Whether the layer checks parameters by itself.
#[allow(non_upper_case_globals)] // The library's name, looked up by the dynamic linker.
#[unsafe(no_mangle)]
static ompi_mpi_param_check: bool = fortran::MPI_PARAM_CHECK;

/// Any source, any tag, no error, nothing received.
#[allow(non_upper_case_globals)] // The library's name, looked up by the dynamic linker.
#[unsafe(no_mangle)]
static ompi_status_empty: Status = fortran::STATUS_EMPTY;
