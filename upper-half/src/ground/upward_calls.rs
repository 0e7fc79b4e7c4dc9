//! The functions of the floors above that the ground calls: one table, which the constructor lays down before anything else runs.
//!
//! The floors import downwards only. If code below must reach up - an object's last holder lets go, a stay inside MPI ends
//! while a checkpoint is pending - it goes through here. An unfilled field does not compile.

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::ground::object::Object;

/// Functions of the floors above.
pub struct Above {
    /// Ends everything that an object's kind and the lower half keep for it: its last holder has let go. Inside a stub.
    pub end: unsafe fn(*mut Object),
    /// A communicator's last holder is about to let go: users that were not counted become holders.
    pub given_up: fn(),
    /// Fortran is about to know a request by number.
    pub known_to_fortran: unsafe fn(*mut Object),
    /// A thread has left its outermost stub while a checkpoint is pending.
    pub park_point: fn(),
    /// A thread has just come near: decides whether it may go the short way, and prepares that. Inside a stub.
    pub came_near: unsafe fn(),
}

/// The table if no constructor has run, as in unit tests: nothing is above.
static NOTHING: Above = {
    unsafe fn no_object(_: *mut Object) {}
    unsafe fn no_way() {}
    fn no_point() {}
    Above {
        end: no_object,
        given_up: no_point,
        known_to_fortran: no_object,
        park_point: no_point,
        came_near: no_way,
    }
};

static ABOVE: AtomicPtr<Above> = AtomicPtr::new((&raw const NOTHING).cast_mut());

/// Lays the table down.
pub fn lay(above: &'static Above) {
    ABOVE.store(core::ptr::from_ref(above).cast_mut(), Ordering::Release);
}

/// The table.
#[inline]
pub fn above() -> &'static Above {
    // SAFETY: only tables that live for ever are laid down, and no code writes to them.
    unsafe { &*ABOVE.load(Ordering::Relaxed) }
}
