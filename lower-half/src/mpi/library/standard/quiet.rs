//! Errors that are returned to the caller.
//!
//! The upper half has every error returned, and runs the application's handlers itself. The standard has the handler `MPI_ERRORS_RETURN` for that, but a
//! library may accept it and end the job all the same: Intel MPI 2021.19 does. There, a handler that we make and that does nothing has the right effect. MPICH
//! 5.0, however, takes an error that such a handler has seen for repaired, and returns success. So the library is tested: a made handler is harmless in both,
//! and if errors are returned with it, objects get that handler.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use std::sync::OnceLock;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::neutral::Word;

use super::{error_to_neutral, ffi};
use crate::mpi::library::loaded::found;

/// `MPI_ERRORS_RETURN`.
const RETURN: Word = 323;

/// `MPI_COMM_WORLD` and `MPI_COMM_SELF`; one of them gets the errors that concern no communicator.
const COMMUNICATORS: [Word; 2] = [257, 258];
/// `MPI_INT`.
const INT: Word = 521;

/// Has the table's functions give objects such handlers, if the library needs them.
pub fn adapt(table: &mut Dispatch) {
    table.comm_set_errhandler = of_communicator;
    table.win_set_errhandler = of_window;
    table.file_set_errhandler = of_file;
}

/// A handler's function with the arguments that matter; it ignores all others.
unsafe extern "C" fn nothing(_object: *mut Word, _code: *mut i32) {}

/// Whether an error that a handler has seen is returned to the caller. MPI has just started, and no other code has called it yet.
fn comes_back() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let tried = || {
        let Some(handler) = made(c"MPI_Comm_create_errhandler") else {
            return false;
        };
        let mut datatype = 0;
        // SAFETY: the communicators and the datatype are predefined, and the place lives on this stack. The only error is a number of elements.
        unsafe {
            for communicator in COMMUNICATORS {
                ffi::MPI_Comm_set_errhandler(communicator, handler);
            }
            let code = ffi::MPI_Type_contiguous(-1, INT, &raw mut datatype);
            for communicator in COMMUNICATORS {
                ffi::MPI_Comm_set_errhandler(communicator, RETURN);
            }
            code != 0
        }
    };
    *KNOWN.get_or_init(tried)
}

/// Returns a handler that the library makes of [`nothing`], if it can.
fn made(create: &CStr) -> Option<Word> {
    type Create = unsafe extern "C" fn(unsafe extern "C" fn(*mut Word, *mut i32), *mut Word) -> i32;
    let create = found::named(create)?;
    let mut made = 0;
    // SAFETY: a symbol with this name is such a function: a handler may get more arguments than it reads. The place lives on this stack.
    let code = unsafe { transmute::<*const c_void, Create>(create)(nothing, &raw mut made) };
    (code == 0).then_some(made)
}

macro_rules! set {
    ($($name:ident $create:literal $set:ident;)*) => {$(
        /// # Safety
        /// As the MPI function.
        unsafe extern "C" fn $name(object: Word, handler: Word) -> i32 {
            static OWN: OnceLock<Word> = OnceLock::new();
            let handler = match handler {
                RETURN if comes_back() => *OWN.get_or_init(|| made($create).unwrap_or(RETURN)),
                other => other,
            };
            // SAFETY: the caller gives what the MPI function takes; the handler is its own, or one that the library has made.
            error_to_neutral(unsafe { ffi::$set(object, handler) })
        }
    )*};
}

set! {
    of_communicator c"MPI_Comm_create_errhandler" MPI_Comm_set_errhandler;
    of_window c"MPI_Win_create_errhandler" MPI_Win_set_errhandler;
    of_file c"MPI_File_create_errhandler" MPI_File_set_errhandler;
}
