//! Tools of hand-written stubs: error classes, and checks of the application's arguments.

use std::ffi::{CStr, c_int};

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{Handle, ListOf, Takes};
use crate::ground::description::null_handle;
use crate::ground::handle;
use crate::ground::object::Object;

/// Error classes of the standard ABI that stubs raise by themselves.
pub mod class {
    #[cfg(not(application = "openmpi"))]
    pub const BUFFER: i32 = 1;
    pub const COUNT: i32 = 2;
    pub const TYPE: i32 = 3;
    pub const COMM: i32 = 5;
    pub const RANK: i32 = 6;
    pub const GROUP: i32 = 9;
    pub const OP: i32 = 10;
    pub const TOPOLOGY: i32 = 11;
    pub const DIMS: i32 = 12;
    pub const ARG: i32 = 13;
    pub const OTHER: i32 = 16;
    pub const INTERN: i32 = 17;
    pub const PENDING: i32 = 18;
    pub const IN_STATUS: i32 = 19;
    pub const FILE: i32 = 30;
    pub const INFO_KEY: i32 = 31;
    pub const INFO_NOKEY: i32 = 32;
    pub const INFO_VALUE: i32 = 33;
    pub const INFO: i32 = 34;
    pub const KEYVAL: i32 = 36;
    pub const NO_MEM: i32 = 39;
    pub const UNSUPPORTED_OPERATION: i32 = 55;
    pub const WIN: i32 = 56;
    pub const SESSION: i32 = 60;
}

/// A neutral error class or code.
pub type MpiResult<T = ()> = Result<T, i32>;

/// Turns the return value of a lower-half function into an outcome.
#[inline]
pub fn check(error: i32) -> MpiResult {
    if error == 0 { Ok(()) } else { Err(error) }
}

/// The error class of a bad handle of a kind.
const fn bad(kind: HandleKind) -> i32 {
    match kind {
        HandleKind::Communicator => class::COMM,
        HandleKind::Group => class::GROUP,
        HandleKind::Datatype => class::TYPE,
        HandleKind::Operator => class::OP,
        HandleKind::Info => class::INFO,
        HandleKind::Window => class::WIN,
        HandleKind::File => class::FILE,
        HandleKind::Session => class::SESSION,
        _ => class::ARG,
    }
}

/// A handle that must lead to a live object other than the null one.
///
/// # Safety
/// `object` must be null or a handle, alive or freed.
#[inline]
pub unsafe fn live(object: *mut Object, kind: HandleKind) -> MpiResult<*mut Object> {
    // SAFETY: `object` is null or a handle, by the caller's promise; it is read only if it is alive.
    unsafe {
        if handle::valid(object, kind) && i32::from((*object).standard) != null_handle(kind) {
            Ok(object)
        } else {
            Err(bad(kind))
        }
    }
}

/// Puts a result into the application's place for it.
///
/// # Safety
/// `place` must be null or point to a place for a `T`.
#[inline]
pub unsafe fn give<T>(place: impl Takes<T>, value: T) -> MpiResult {
    if place.is_nowhere() {
        return Err(class::ARG);
    }
    // SAFETY: the place is not nowhere, so it is a place for a `T`, by the caller's promise.
    unsafe { place.put(value) };
    Ok(())
}

/// The application's array, empty if the count is not positive.
///
/// # Safety
/// `array` must be null or have `count` elements.
#[inline]
pub unsafe fn slice<'a, T>(array: *const T, count: c_int) -> MpiResult<&'a [T]> {
    match usize::try_from(count) {
        Ok(0) | Err(_) => Ok(&[]),
        Ok(_) if array.is_null() => Err(class::ARG),
        // SAFETY: the array is not null here, so it has `count` elements, by the caller's promise; MPI forbids the application to change them during the call.
        Ok(count) => Ok(unsafe { std::slice::from_raw_parts(array, count) }),
    }
}

/// The objects of the application's array of handles, as [`slice`].
///
/// # Safety
/// `handles` must be null or have `count` elements.
pub unsafe fn objects<H: Handle>(handles: ListOf<H>, count: c_int) -> MpiResult<Vec<*mut Object>> {
    match usize::try_from(count) {
        Ok(0) | Err(_) => Ok(Vec::new()),
        Ok(_) if handles.is_null() => Err(class::ARG),
        // SAFETY: the array is not null here, so it has `count` handles, by the caller's promise.
        Ok(count) => Ok(unsafe { handles.objects(count) }.collect()),
    }
}

/// A function's name with the nul that ends it.
pub const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"MPI",
    }
}

/// A function pointer of the application as a number; 0 for none.
#[inline]
pub fn address<F>(function: F) -> usize {
    const { assert!(size_of::<F>() == size_of::<usize>()) }
    // SAFETY: an optional function pointer has a pointer's size, and none is null.
    unsafe { std::mem::transmute_copy(&function) }
}
