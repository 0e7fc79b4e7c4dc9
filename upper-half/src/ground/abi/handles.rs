//! Handles of the application, and the objects that they lead to: only this module turns handles into objects, and objects into handles.
//!
//! A generated stub has the application's handles for parameters. Its first lines turn each into an object, a [`PlaceOf`] or a [`ListOf`], and
//! all functions that it calls know objects alone. Each kind of handle is a type of its own, whose contents no other module may read (`types.rs`). So
//! the compiler reports a forgotten conversion.

use core::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;

use super::predefined::numbered;
use crate::ground::narrow;
use crate::ground::object::Object;

/// The representation of a handle, as the description of the ABI gives it: it knows its object.
pub(super) trait Raw: Copy {
    /// The object of a handle of that kind. Any other value leads to none: to null or a small address, as [`word`](super::word) expects it.
    fn object(self, kind: HandleKind) -> *mut Object;
    /// The handle of an object.
    fn of(object: *mut Object) -> Self;
    /// The object of a number, where it was asked for before.
    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self, _kind: HandleKind) -> Option<*mut Object> {
        None
    }
}

/// A handle that is its object's address.
impl Raw for *mut Object {
    #[inline(always)]
    fn object(self, _kind: HandleKind) -> *mut Object {
        self
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        object
    }
}

/// Numbers below this are not addresses: they are predefined handles, if these are numbers.
const FIRST_ADDRESS: usize = 4096;

/// A handle that is its object's address, except predefined ones, which are small numbers.
impl Raw for usize {
    #[inline(always)]
    fn object(self, kind: HandleKind) -> *mut Object {
        if self < FIRST_ADDRESS {
            return numbered(kind, self as i32);
        }
        core::ptr::with_exposed_provenance_mut(self)
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        if object.addr() >= FIRST_ADDRESS {
            // SAFETY: objects are never unmapped.
            unsafe {
                if (*object).predefined() {
                    return (*object).fortran as usize;
                }
            }
        }
        object.expose_provenance()
    }
}

/// A handle that is a number of 32 bits.
impl Raw for c_int {
    #[inline(always)]
    fn object(self, kind: HandleKind) -> *mut Object {
        if let Some(object) = narrow::known(kind, self) {
            return object;
        }
        let object = match narrow::place_of(kind, self) {
            Some(place) => narrow::at(place),
            None => numbered(kind, self),
        };
        narrow::remember(kind, self, object);
        object
    }

    #[inline(always)]
    fn of(object: *mut Object) -> Self {
        if object.addr() < FIRST_ADDRESS {
            return 0;
        }
        // SAFETY: objects are never unmapped.
        unsafe { narrow::number_of(object) }
    }

    #[cfg(application = "mpich")]
    #[inline(always)]
    fn known(self, kind: HandleKind) -> Option<*mut Object> {
        narrow::known(kind, self)
    }
}

/// A handle of the application, of one kind.
pub trait Handle: Copy {
    /// The object that it leads to, alive or freed; any other value gives null or a small address.
    fn object(self) -> *mut Object;
    /// The handle of an object.
    fn of(object: *mut Object) -> Self;
    /// Whether both are the same handle.
    fn same(self, other: Self) -> bool;
    /// The object that it leads to, where it was asked for before.
    #[cfg(application = "mpich")]
    fn known(self) -> Option<*mut Object>;
}

/// The place where the application keeps a handle, or several side by side.
#[repr(transparent)]
pub struct PlaceOf<H>(*mut H);

impl<H> Clone for PlaceOf<H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for PlaceOf<H> {}

impl<H: Handle> PlaceOf<H> {
    /// The place that the application has given.
    #[inline(always)]
    pub fn at(place: *mut H) -> Self {
        Self(place)
    }

    /// The place, as the application has given it.
    pub fn given(self) -> *mut H {
        self.0
    }

    /// Whether the application has given none.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The place of the handle that many places further on.
    ///
    /// # Safety
    /// The array must have that many elements, or one less.
    #[inline(always)]
    pub unsafe fn add(self, index: usize) -> Self {
        // SAFETY: the array has at least `index` elements, by the caller's promise, so the result is within it or one past its end.
        Self(unsafe { self.0.add(index) })
    }

    /// The object of the handle there.
    ///
    /// # Safety
    /// A handle must be there.
    #[inline(always)]
    pub unsafe fn get(self) -> *mut Object {
        // SAFETY: the place holds a handle, by the caller's promise; it is copied.
        unsafe { *self.0 }.object()
    }

    /// The object of the handle there, if that is found at once; otherwise the address of an object that stands for none, or a value that is not an address.
    ///
    /// # Safety
    /// A handle must be there.
    #[inline(always)]
    pub unsafe fn at_hand(self) -> *mut Object {
        // SAFETY: the place holds a handle, by the caller's promise; a number that is not known gives `nothing` instead of an address.
        #[cfg(application = "mpich")]
        return unsafe { *self.0 }.known().unwrap_or(narrow::nothing());
        // SAFETY: the place holds a handle, by the caller's promise, and that is its object's address or a small number.
        #[cfg(not(application = "mpich"))]
        return unsafe { self.get() };
    }

    /// Whether this very handle is there: for a handle that is asked for again and again.
    ///
    /// # Safety
    /// A handle must be there.
    #[inline(always)]
    pub unsafe fn holds(self, handle: H) -> bool {
        // SAFETY: the place holds a handle, by the caller's promise; it is only compared.
        unsafe { *self.0 }.same(handle)
    }

    /// Puts a handle there.
    ///
    /// # Safety
    /// The place must be writable.
    #[inline(always)]
    pub unsafe fn write(self, handle: H) {
        // SAFETY: the place is writable, by the caller's promise; handles need no drop.
        unsafe { *self.0 = handle };
    }

    /// Puts an object's handle there.
    ///
    /// # Safety
    /// The place must be writable.
    #[inline(always)]
    pub unsafe fn set(self, object: *mut Object) {
        // SAFETY: the place is writable, by the caller's promise; `of` reads the object, which is never unmapped.
        unsafe { *self.0 = H::of(object) };
    }
}

/// Handles that the application has side by side, and that are only read.
#[repr(transparent)]
pub struct ListOf<H>(*const H);

impl<H> Clone for ListOf<H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for ListOf<H> {}

impl<H: Handle> ListOf<H> {
    /// The array that the application has given.
    #[inline(always)]
    pub fn at(first: *const H) -> Self {
        Self(first)
    }

    /// Whether the application has given none.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The array, as the application has given it.
    pub fn given(self) -> *const H {
        self.0
    }

    /// The objects of the first `count` handles.
    ///
    /// # Safety
    /// There must be that many.
    pub unsafe fn objects(self, count: usize) -> impl Iterator<Item = *mut Object> {
        // SAFETY: every index is below `count`, and the list has so many handles, by the caller's promise.
        (0..count).map(move |index| unsafe { *self.0.add(index) }.object())
    }
}

/// A place of the application's that takes a result.
pub trait Takes<T>: Copy {
    /// Whether the application has given none.
    fn is_nowhere(self) -> bool;
    /// Puts the result there.
    ///
    /// # Safety
    /// The place must be writable.
    unsafe fn put(self, value: T);
}

impl<T> Takes<T> for *mut T {
    #[inline(always)]
    fn is_nowhere(self) -> bool {
        self.is_null()
    }

    #[inline(always)]
    unsafe fn put(self, value: T) {
        // SAFETY: the place is writable, by the caller's promise, and has a `T`'s alignment, since it is the application's `T`.
        unsafe { self.write(value) };
    }
}

impl<H: Handle> Takes<*mut Object> for PlaceOf<H> {
    #[inline(always)]
    fn is_nowhere(self) -> bool {
        self.is_null()
    }

    #[inline(always)]
    unsafe fn put(self, object: *mut Object) {
        // SAFETY: the place is writable, by the caller's promise.
        unsafe { self.set(object) };
    }
}
