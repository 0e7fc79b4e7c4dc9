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

/// An error handler that cannot end meanwhile: it has one holder more, which lets go when this is dropped. If the application's function leaves by a jump,
/// that never happens: the handler then lives on.
pub struct Held(*mut Object);

impl Held {
    /// Adds a holder.
    ///
    /// # Safety
    /// `handler` must be alive; the thread must be inside a stub until this is dropped.
    pub unsafe fn new(handler: *mut Object) -> Self {
        // SAFETY: the error handler is alive, by the caller's promise.
        unsafe { handle::retain(handler) };
        Self(handler)
    }

    /// The error handler, alive as long as this is.
    pub fn object(&self) -> *mut Object {
        self.0
    }

    /// Gives the holder away with the error handler.
    pub fn into_holder(self) -> *mut Object {
        let handler = self.0;
        std::mem::forget(self);
        handler
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: `new` has added this holder, and its caller stays inside a stub until now.
        unsafe { handle::release(self.0) };
    }
}

/// An object's error handler. It is read and held in one step: another thread may set another one at any moment, and the table's holder is then gone.
///
/// # Safety
/// `object` must be null or an object; the thread must be inside a stub until the result is dropped.
pub unsafe fn handler_of(object: *mut Object) -> Held {
    // SAFETY: the thread stays inside, by the caller's promise. The default error handlers are predefined objects, which never end.
    unsafe { hold_own(object).unwrap_or_else(|| Held::new(default_of(object))) }
}

/// The error handler that an object was given, if it was.
///
/// # Safety
/// As [`handler_of`].
unsafe fn hold_own(object: *mut Object) -> Option<Held> {
    let handlers = HANDLERS.lock();
    let own = handlers.get(&(object as usize))?;
    // SAFETY: the table holds its error handlers, and no thread takes one out while it is locked; this one stays inside, by the caller's promise.
    Some(unsafe { Held::new(*own as *mut Object) })
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
    // SAFETY: inside; the error handler is held until it is set, and `new` is alive, by the caller's promise.
    unsafe {
        if let Some(handler) = hold_own(from) {
            set_handler(new, handler.object());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> *mut Object {
        let kind = HandleKind::Window;
        let function = Function::C(1);
        new_handler(Handler { kind, function })
    }

    #[test]
    fn a_handler_that_was_read_lives_on_when_another_is_set() {
        let object = handle::create(HandleKind::Window, 0, std::ptr::null_mut());
        let (first, second) = (new(), new());
        // SAFETY: the objects are the test's own; nothing looks at whether a thread is inside a stub.
        unsafe {
            set_handler(object, first);
            handle::release(first);
            let read = handler_of(object);
            set_handler(object, second);
            handle::release(second);
            assert_eq!(read.object(), first);
            assert_eq!(Object::held_by(first), 1);
            drop(read);
            assert!(!handle::valid(first, HandleKind::Errhandler));
            assert_eq!(handler_of(object).into_holder(), second);
            assert_eq!(Object::held_by(second), 2);
            handle::release(second);
            forget(object);
            assert!(!handle::valid(second, HandleKind::Errhandler));
            handle::recycle(object);
        }
    }
}
