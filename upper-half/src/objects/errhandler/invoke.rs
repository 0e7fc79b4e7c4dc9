//! Running an error handler.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;

use super::table::{ABORT, ARE_FATAL, Function, Handler, Held, RETURN, handler_of};
use crate::ground::abi::{CommHandle, ErrorHandler, FileHandle, Handle, WinHandle};
use crate::ground::object::Object;
use crate::ground::{abi, crossing, fortran};

/// The kind of no object: MPI is not running.
const OUTSIDE: u32 = 0;

type FortranFunction = unsafe extern "C" fn(*mut i32, *mut i32);

/// The object on which an error is raised: the one that it happened on, or `MPI_COMM_WORLD` if that one cannot have
/// an error handler (a datatype) or is not an object.
fn raised_on(object: *mut Object) -> *mut Object {
    const HANDLES_ERRORS: [u16; 4] = [
        HandleKind::Communicator as u16,
        HandleKind::Window as u16,
        HandleKind::File as u16,
        HandleKind::Session as u16,
    ];
    // SAFETY: handles that get here were checked, or are null.
    let usable = unsafe {
        !object.is_null()
            && (*object).magic == crate::ground::object::ALIVE
            && HANDLES_ERRORS.contains(&(*object).kind)
            && (*object).standard != 256
            && (*object).standard != 272
            && (*object).standard != 288
    };
    if usable {
        object
    } else {
        abi::predefined(HandleKind::Communicator, 257)
    }
}

/// Raises an error (a neutral class or code; 0 is none) of a function on an object: a communicator, a window,
/// a file, or null if there is none. Returns the stub's return value, if it returns at all.
///
/// # Safety
/// Inside a stub, nothing locked; `object` must be null or lead to an object.
#[cold]
pub unsafe fn raise(object: *mut Object, error: i32, function: &'static CStr) -> c_int {
    // SAFETY: `object` is null or leads to an object, by the caller's promise, and the thread is inside a stub with nothing locked.
    unsafe { raise_own(object, abi::error_from_neutral(error), function) }
}

/// [`raise`] with an error in the application's own values.
///
/// # Safety
/// As [`raise`].
pub unsafe fn raise_own(object: *mut Object, error: c_int, function: &CStr) -> c_int {
    if error == 0 {
        return 0;
    }
    let on = raised_on(object);
    // SAFETY: `object` is null or leads to an object, by the caller's promise; its error handler is held until it has run.
    unsafe { raise_by(&handler_of(on), on, error, function) }
}

/// Raises an error, in the application's own values, by a handler that need not be the object's.
///
/// # Safety
/// As [`raise`]; `on` must be an object that handles errors.
pub unsafe fn raise_by(handler: &Held, on: *mut Object, error: c_int, function: &CStr) -> c_int {
    let handler = handler.object();
    // SAFETY: the error handler is held, so it is alive; the application's function is called as it was declared to us.
    unsafe {
        match i32::from((*handler).standard) {
            RETURN => {}
            ARE_FATAL | ABORT => fatal(on, error, function.as_ptr()),
            // MPI_ERRORS_THROW_EXCEPTIONS: the C++ bindings look at the code that we return.
            standard if standard != 0 => {}
            _ => call(handler, on, error, function.as_ptr()),
        }
    }
    error
}

/// # Safety
/// `handler` must be a handler of the application's, `object` of its kind.
unsafe fn call(handler: *mut Object, object: *mut Object, error: c_int, name: *const c_char) {
    // SAFETY: the body is the one of `new_handler`; the function has the type that its binding asks for.
    unsafe {
        let Some(body) = (*handler).body.cast::<Handler>().as_ref() else {
            return;
        };
        let mut error = error;
        match body.function {
            Function::C(function) => match body.kind {
                HandleKind::Window => call_c::<WinHandle>(function, object, error, name),
                HandleKind::File => call_c::<FileHandle>(function, object, error, name),
                #[cfg(not(application = "openmpi"))]
                HandleKind::Session => {
                    call_c::<abi::SessionHandle>(function, object, error, name);
                }
                _ => call_c::<CommHandle>(function, object, error, name),
            },
            Function::Fortran(function) => {
                let function: FortranFunction = std::mem::transmute(function);
                let mut number = fortran::to_fortran(object);
                function(&raw mut number, &raw mut error);
            }
            Function::Cxx(function) => {
                fortran::call_cxx_handler(handler, object, error, name, function);
            }
        }
    }
}

/// # Safety
/// `function` must be C's error handler of objects whose handles are of the kind `H`, `object` such a one.
unsafe fn call_c<H: Handle>(
    function: usize,
    object: *mut Object,
    mut error: c_int,
    name: *const c_char,
) {
    // SAFETY: `function` is C's error handler for this kind of handle, by the caller's promise. It is variadic in C, and gets what the standard says.
    unsafe {
        let function: ErrorHandler<H> = std::mem::transmute(function);
        let (mut handle, end) = (H::of(object), std::ptr::null_mut::<c_void>());
        if let Some(function) = function {
            function(&raw mut handle, &raw mut error, name, end);
        }
    }
}

/// Lets the real MPI say what went wrong, and end the job.
///
/// # Safety
/// `object` must be a live communicator, window or file.
unsafe fn fatal(object: *mut Object, error: c_int, name: *const c_char) {
    // The real MPI does not know the application's sessions.
    // SAFETY: `object` is alive, by the caller's promise.
    let object = match unsafe { (*object).kind } == HandleKind::Session as u16 {
        true => abi::predefined(HandleKind::Communicator, 257),
        false => object,
    };
    // SAFETY: inside a stub; the function takes any word of its kind.
    unsafe {
        let running = crossing::gate().mpi_active.load(Ordering::Relaxed) != 0;
        let kind = if running {
            u32::from((*object).kind)
        } else {
            OUTSIDE
        };
        let word = (*object).lower;
        let neutral = abi::error_to_neutral(error);
        crossing::cross(|dispatch| (dispatch.extra.fatal)(kind, word, neutral, name));
    }
}

/// The real MPI reports that a function that needs MPI was called before MPI had started or after it had ended, and
/// ends the process.
///
/// # Safety
/// Inside a stub.
#[cold]
pub unsafe fn outside(function: &'static CStr) -> c_int {
    let name = function.as_ptr();
    // SAFETY: the caller is inside a stub, and `name` is a static C string.
    unsafe { crossing::cross(|dispatch| (dispatch.extra.fatal)(OUTSIDE, 0, 0, name)) };
    abi::error_from_neutral(crate::objects::outcome::class::OTHER)
}
