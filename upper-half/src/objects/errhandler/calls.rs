//! The functions that make, set, get, free and call error handlers.

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering::Relaxed;

use stillpoint_wrappers::gate::HandleKind;

use super::table::{Function, Handler, handler_of, new_handler, set_handler};
use crate::ground::abi::{
    self, CommErrhandlerFunction, ErrhandlerHandle, FileErrhandlerFunction, HandlerFunction,
    PlaceOf, WinErrhandlerFunction,
};
use crate::ground::handle;
use crate::ground::object::{Comm, Errhandler, File, Object, Win};
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, address, class, give, live, name};

/// # Safety
/// As the MPI function of that name.
unsafe fn create(
    kind: HandleKind,
    function: usize,
    place: PlaceOf<ErrhandlerHandle>,
    name: &'static CStr,
) -> c_int {
    // SAFETY: MPI demands a place that is null or writable; `give` refuses null.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            if function == 0 {
                return Err(class::ARG);
            }
            let function = Function::C(function);
            give(place, new_handler(Handler { kind, function }))
        })
    }
}

/// The object that a handler is set on: files include the null file, whose handler is every new file's.
///
/// # Safety
/// `object` must be null or a handle, alive or freed.
unsafe fn target(object: *mut Object, kind: HandleKind) -> MpiResult<*mut Object> {
    // SAFETY: `object` is null or a handle, by the caller's promise, and both branches look at it before they use it.
    unsafe {
        if kind == HandleKind::File && handle::valid(object, kind) {
            return Ok(object);
        }
        live(object, kind)
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn set(
    object: *mut Object,
    kind: HandleKind,
    handler: Errhandler,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `target` and `live` look at both handles; an error handler's body is that of `new_handler`, or null for a predefined one.
    unsafe {
        run(object, name, || {
            let object = target(object, kind)?;
            let handler = live(handler, HandleKind::Errhandler)?;
            let of = (*handler).body.cast::<Handler>();
            if !of.is_null() && (*of).kind != kind {
                return Err(class::ARG);
            }
            set_handler(object, handler);
            Ok(())
        })
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn get(
    object: *mut Object,
    kind: HandleKind,
    place: PlaceOf<ErrhandlerHandle>,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `target` looks at the object first. A handler that is given out has one holder more, which the application frees.
    unsafe {
        run(object, name, || {
            let handler = handler_of(target(object, kind)?);
            give(place, handler.object())?;
            handler.into_holder();
            Ok(())
        })
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn call(object: *mut Object, kind: HandleKind, error: c_int, name: &'static CStr) -> c_int {
    // SAFETY: `target` looks at the object first; the application's handler is called as MPI does.
    unsafe {
        run(object, name, || {
            super::raise_own(target(object, kind)?, error, name);
            Ok(())
        })
    }
}

/// `MPI_Errhandler_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn errhandler_free(handler: PlaceOf<ErrhandlerHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `live` looks at it; predefined ones keep one holder.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Errhandler_free", || {
            if handler.is_null() {
                return Err(class::ARG);
            }
            let object = live(handler.get(), HandleKind::Errhandler)?;
            handler.set(abi::predefined(HandleKind::Errhandler, 320));
            if (*object).predefined() {
                // Given out and given back; one holder always stays. Two threads may give back at once.
                let fewer = |held: u32| (held > 1).then(|| held - 1);
                let _ = Object::holders(object).fetch_update(Relaxed, Relaxed, fewer);
                return Ok(());
            }
            handle::release(object);
            Ok(())
        })
    }
}

/// Writes the functions of one kind of object: create, set, get, call.
macro_rules! of_kind {
    ($kind:ident, $handle:ty, $function:ty;
     $create:ident $create_name:literal, $set:ident $set_name:literal,
     $get:ident $get_name:literal) => {
        #[doc = concat!("`", $create_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $create(function: $function, place: PlaceOf<ErrhandlerHandle>) -> c_int {
            // SAFETY: the function has the type of its kind, as MPI demands; `create` refuses a null function or place.
            unsafe {
                create(
                    HandleKind::$kind,
                    address(function),
                    place,
                    name(concat!($create_name, "\0")),
                )
            }
        }

        #[doc = concat!("`", $set_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $set(object: $handle, handler: Errhandler) -> c_int {
            // SAFETY: MPI demands two handles, and `set` looks at both before it uses them.
            unsafe {
                set(
                    object,
                    HandleKind::$kind,
                    handler,
                    name(concat!($set_name, "\0")),
                )
            }
        }

        #[doc = concat!("`", $get_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $get(object: $handle, place: PlaceOf<ErrhandlerHandle>) -> c_int {
            // SAFETY: MPI demands a handle and a writable place; `get` looks at the one and refuses the other if it is null.
            unsafe {
                get(
                    object,
                    HandleKind::$kind,
                    place,
                    name(concat!($get_name, "\0")),
                )
            }
        }
    };
}

of_kind!(Communicator, Comm, CommErrhandlerFunction;
    comm_create_errhandler "MPI_Comm_create_errhandler",
    comm_set_errhandler "MPI_Comm_set_errhandler",
    comm_get_errhandler "MPI_Comm_get_errhandler");
of_kind!(Communicator, Comm, HandlerFunction;
    errhandler_create "MPI_Errhandler_create",
    errhandler_set "MPI_Errhandler_set",
    errhandler_get "MPI_Errhandler_get");
of_kind!(Window, Win, WinErrhandlerFunction;
    win_create_errhandler "MPI_Win_create_errhandler",
    win_set_errhandler "MPI_Win_set_errhandler",
    win_get_errhandler "MPI_Win_get_errhandler");
of_kind!(File, File, FileErrhandlerFunction;
    file_create_errhandler "MPI_File_create_errhandler",
    file_set_errhandler "MPI_File_set_errhandler",
    file_get_errhandler "MPI_File_get_errhandler");

#[cfg(not(application = "openmpi"))]
of_kind!(Session, *mut Object, abi::SessionErrhandlerFunction;
    session_create_errhandler "MPI_Session_create_errhandler",
    session_set_errhandler "MPI_Session_set_errhandler",
    session_get_errhandler "MPI_Session_get_errhandler");

/// `MPI_Session_call_errhandler`.
///
/// # Safety
/// As the MPI function.
#[cfg(not(application = "openmpi"))]
pub unsafe fn session_call_errhandler(object: *mut Object, error: c_int) -> c_int {
    // SAFETY: `call` looks at the session's handle before it uses it.
    unsafe {
        call(
            object,
            HandleKind::Session,
            error,
            c"MPI_Session_call_errhandler",
        )
    }
}

/// `MPI_Comm_call_errhandler`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_call_errhandler(object: Comm, error: c_int) -> c_int {
    // SAFETY: `call` looks at the communicator's handle before it raises the error on it.
    unsafe {
        call(
            object,
            HandleKind::Communicator,
            error,
            c"MPI_Comm_call_errhandler",
        )
    }
}

/// `MPI_Win_call_errhandler`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_call_errhandler(object: Win, error: c_int) -> c_int {
    // SAFETY: `call` looks at the window's handle before it raises the error on it.
    unsafe {
        call(
            object,
            HandleKind::Window,
            error,
            c"MPI_Win_call_errhandler",
        )
    }
}

/// `MPI_File_call_errhandler`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_call_errhandler(object: File, error: c_int) -> c_int {
    // SAFETY: `call` looks at the file's handle, which may be the null file's, before it raises the error on it.
    unsafe { call(object, HandleKind::File, error, c"MPI_File_call_errhandler") }
}
