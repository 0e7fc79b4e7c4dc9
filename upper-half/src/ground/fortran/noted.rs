//! Notes in objects for MPICH's Fortran and C++ layers, about the language of an object's functions. The layers themselves look into no object.

use std::ffi::{c_char, c_int, c_void};

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::description::internals::{
    HANDLER_OF_COMMUNICATOR, HANDLER_OF_FILE, HANDLER_OF_WINDOW, OBJECT_HEAD,
};
use crate::ground::object::Object;

/// The word behind an object's head: the function that calls an error handler of C++'s, or whether a generalized request's functions are Fortran's.
unsafe fn note(object: *mut Object) -> *mut usize {
    object.wrapping_byte_add(OBJECT_HEAD).cast()
}

/// Nothing is noted yet.
///
/// # Safety
/// `object` must be a live object with the room of its kind.
pub unsafe fn mirror(object: *mut Object) {
    // SAFETY: the room of every kind is larger.
    unsafe { note(object).write(0) };
}

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

/// Notes that a generalized request's functions are Fortran's.
///
/// # Safety
/// `request` must be a live request.
pub unsafe fn note_fortran(request: *mut Object) {
    // SAFETY: the request is alive, by the caller's promise; the room of every object has a word behind its head.
    unsafe { note(request).write(1) };
}

/// Whether a generalized request's functions are C's.
///
/// # Safety
/// `request` must be a request that was laid out.
pub unsafe fn is_in_c(request: *mut Object) -> bool {
    // SAFETY: `mirror` has written the word when the request was laid out.
    unsafe { note(request).read() == 0 }
}

/// An operator's function gets the same arguments in Fortran as in C.
///
/// # Safety
/// None to keep.
pub unsafe fn takes_fortran(_operator: *mut Object) -> bool {
    false
}

/// Notes the function that calls an error handler of C++'s.
///
/// # Safety
/// `handler` must be a live error handler.
pub unsafe fn note_cxx_handler(handler: *mut Object, function: usize) {
    // SAFETY: the error handler is alive, by the caller's promise; the room of every object has a word behind its head.
    unsafe { note(handler).write(function) };
}

/// Calls an error handler of the former C++ bindings through the function that they have given for that.
///
/// # Safety
/// `handler` must be a live error handler that they made with `function`.
pub unsafe fn call_cxx_handler(
    handler: *mut Object,
    object: *mut Object,
    error: c_int,
    _name: *const c_char,
    function: usize,
) {
    type Dispatch = unsafe extern "C" fn(c_int, *mut c_void, *mut c_int, usize);
    // SAFETY: what was noted is a function of that type, or nothing.
    unsafe {
        let dispatch: Option<Dispatch> = note(handler).cast::<Option<Dispatch>>().read();
        let Some(dispatch) = dispatch else {
            return;
        };
        let kind = match (*object).kind {
            kind if kind == HandleKind::File as u16 => HANDLER_OF_FILE,
            kind if kind == HandleKind::Window as u16 => HANDLER_OF_WINDOW,
            _ => HANDLER_OF_COMMUNICATOR,
        };
        // A file's handle is its address, which fills the place; others are numbers.
        let mut handle = match kind {
            HANDLER_OF_FILE => object.expose_provenance(),
            _ => super::to_fortran(object).cast_unsigned() as usize,
        };
        let mut error = error;
        dispatch(kind, (&raw mut handle).cast(), &raw mut error, function);
    }
}

/// Calls an operator's function of the former C++ bindings through the function that they have given for that.
///
/// # Safety
/// `intercept` must be theirs; the vectors, the count and the handle's place as MPI gives them to an operator.
pub unsafe fn call_cxx_operator<H: Copy>(
    intercept: usize,
    (inputs, results): (*mut c_void, *mut c_void),
    count: *mut c_int,
    datatype: *mut H,
    function: usize,
) {
    type Intercept<H> = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, H, usize);
    // SAFETY: `intercept` is the bindings' function, by the caller's promise, and so has this type; count and handle are readable, as MPI gives them.
    unsafe {
        let intercept: Intercept<H> = core::mem::transmute(intercept);
        intercept(inputs, results, *count, *datatype, function);
    }
}
