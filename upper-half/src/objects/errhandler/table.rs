//! Error handlers and the objects that have one of their own.

use std::collections::BTreeMap;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{abi, handle};

/// `MPI_ERRORS_ARE_FATAL`, by its standard-ABI value.
pub const ARE_FATAL: i32 = 321;
/// `MPI_ERRORS_ABORT`.
pub const ABORT: i32 = 322;
/// `MPI_ERRORS_RETURN`.
pub const RETURN: i32 = 323;

/// The application's function, by the binding that it came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `void f(MPI_Comm *, int *, ...)`, or a window's or a file's.
    C(usize),
    /// `SUBROUTINE F(HANDLE, ERROR)`.
    Fortran(usize),
    /// Of the former C++ bindings, which keep beside it the way to call it.
    Cxx(usize),
}

/// An error handler that the application has made.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// The kind of object that it is for.
    pub kind: HandleKind,
    pub function: Function,
}

/// Error handlers of objects that do not have their kind's default one; each is held.
static HANDLERS: SpinLock<BTreeMap<usize, usize>> = SpinLock::new(BTreeMap::new());

/// Makes an error handler.
pub fn new_handler(handler: Handler) -> *mut Object {
    let body = Box::into_raw(Box::new(handler));
    handle::create(HandleKind::Errhandler, 0, body.cast())
}

/// Notes that an error handler's function is C++'s.
///
/// # Safety
/// `object` must be a live error handler made by [`new_handler`].
#[cfg(application = "mpich")]
pub unsafe fn make_cxx(object: *mut Object) {
    // SAFETY: the body is the box of `new_handler`.
    if let Some(body) = unsafe { (*object).body.cast::<Handler>().as_mut() }
        && let Function::C(function) = body.function
    {
        body.function = Function::Cxx(function);
    }
}

/// Ends an error handler that has no holder any more.
///
/// # Safety
/// `object` must be a live error handler made by [`new_handler`].
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the body is the box of `new_handler`.
    unsafe {
        let body = (*object).body.cast::<Handler>();
        if !body.is_null() {
            drop(Box::from_raw(body));
            (*object).body = std::ptr::null_mut();
        }
    }
}

/// The handler of an object that was given none: communicators and windows end the job, files return (MPI 5.0, section 9.3). A file gets the handler of
/// `MPI_FILE_NULL` when it is opened ([`inherit`]), and not later (section 14.7).
fn default_of(object: *mut Object) -> *mut Object {
    // SAFETY: the callers have looked at the object, which is alive or null.
    let file = unsafe { !object.is_null() && (*object).kind == HandleKind::File as u16 };
    abi::predefined(
        HandleKind::Errhandler,
        if file { RETURN } else { ARE_FATAL },
    )
}

/// An object's error handler.
pub fn handler_of(object: *mut Object) -> *mut Object {
    let own = HANDLERS.lock().get(&(object as usize)).copied();
    match own {
        Some(handler) => handler as *mut Object,
        None => default_of(object),
    }
}

/// Gives an object an error handler.
///
/// # Safety
/// Both must be alive; inside a stub.
pub unsafe fn set_handler(object: *mut Object, handler: *mut Object) {
    // SAFETY: both are alive, by the caller's promise; the table holds the new error handler from here on, and has held the old one until now.
    unsafe {
        handle::retain(handler);
        let old = HANDLERS.lock().insert(object as usize, handler as usize);
        if let Some(old) = old {
            handle::release(old as *mut Object);
        }
    }
}

/// Gives a new communicator the handler of the one that it was made from.
///
/// # Safety
/// As [`set_handler`].
pub unsafe fn inherit(new: *mut Object, from: *mut Object) {
    let own = HANDLERS.lock().get(&(from as usize)).copied();
    if let Some(handler) = own {
        // SAFETY: the error handler is `from`'s, whose entry of the table holds it; `new` is alive, by the caller's promise.
        unsafe { set_handler(new, handler as *mut Object) };
    }
}

/// Forgets an object that ends.
///
/// # Safety
/// Inside a stub.
pub unsafe fn forget(object: *mut Object) {
    let old = HANDLERS.lock().remove(&(object as usize));
    if let Some(old) = old {
        // SAFETY: the table has held the error handler, and its entry is gone now.
        unsafe { handle::release(old as *mut Object) };
    }
}

/// `MPI_COMM_SELF` and `MPI_COMM_WORLD` start with the defaults: nothing to do but to be ready.
pub fn initialise() {
    HANDLERS.lock().clear();
}
