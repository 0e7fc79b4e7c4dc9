//! Ends a job under `MPI_ERRORS_ARE_FATAL`: with the real MPI's message if it has one, otherwise with our own.

use std::ffi::{CStr, c_char};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::backend::BACKEND;
use super::convert;
use super::library::{abi, ffi};
use super::predefined::{WORLD, predefined};
use crate::ground::say;

/// Implements `Extra::fatal`.
///
/// # Safety
/// `function` must be a name that ends in NUL, and `object` an object of that kind; MPI must be running unless the kind is 0.
pub unsafe extern "C" fn fatal(kind: u32, object: Word, error: i32, function: *const c_char) {
    let code = abi::error_from_neutral(error);
    let kinds = [
        HandleKind::Communicator,
        HandleKind::Window,
        HandleKind::File,
    ];
    let on = kinds.into_iter().find(|it| *it as u32 == kind);
    // SAFETY: the upper half gives a function's name that ends in NUL, and an object of that kind; MPI_Abort ends the job.
    unsafe {
        match BACKEND.fatal {
            Some(own) => own(on, object, code, function),
            None => say_it(on, code, CStr::from_ptr(function)),
        }
        let world = predefined(HandleKind::Communicator as u32, WORLD);
        ffi::MPI_Abort(convert::handle(world), code);
    }
}

/// Prints the error's text by the standard's function. If MPI is not running, this ends the process.
///
/// # Safety
/// MPI must be running if `on` is an object's kind.
unsafe fn say_it(on: Option<HandleKind>, code: i32, function: &CStr) {
    let function = function.to_string_lossy();
    if on.is_none() {
        say::line(format_args!(
            "{function} was called before MPI had started or after it had ended"
        ));
        // SAFETY: the call ends the process, which MPI cannot do before it starts or after it ends.
        unsafe { libc::_exit(1) };
    }
    let mut text = [0 as c_char; abi::MAX_ERROR_STRING];
    let mut length = 0;
    // SAFETY: the place has the maximal length of the library's texts, including the terminating NUL, and both places live on this stack.
    let told = unsafe {
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length) == 0 && text.last() == Some(&0)
    };
    let text = if told {
        // SAFETY: the last byte is a NUL, as was just checked.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy()
    } else {
        format!("error {code}").into()
    };
    say::line(format_args!(
        "{function} failed, and errors are fatal: {text}"
    ));
}
