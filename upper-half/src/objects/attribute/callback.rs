//! Calling the application's copy and delete functions.
//!
//! They run here, in the stub, under the application's own thread pointer; the lower half never knows
//! of attributes. They may call MPI themselves, so nothing is locked meanwhile.

use std::ffi::c_void;

use stillpoint_wrappers::gate::HandleKind;

use super::store::{Attribute, Keyval, Language, Value};
use crate::ground::abi::{
    CommHandle, Copier, DUPLICATES, DatatypeHandle, Deleter, Handle, WinHandle,
};
use crate::ground::fortran;
use crate::ground::object::Object;

type FortranCopy<T> =
    unsafe extern "C" fn(*mut i32, *mut i32, *mut T, *mut T, *mut T, *mut i32, *mut i32);
type FortranDelete<T> = unsafe extern "C" fn(*mut i32, *mut i32, *mut T, *mut T, *mut i32);

/// Integers that Fortran's callbacks take by reference.
trait FortranValue: Copy + Default {
    fn narrow(value: isize) -> Self;
    fn widen(self) -> isize;
}

impl FortranValue for i32 {
    fn narrow(value: isize) -> Self {
        value as i32
    }
    fn widen(self) -> isize {
        self as isize
    }
}

impl FortranValue for isize {
    fn narrow(value: isize) -> Self {
        value
    }
    fn widen(self) -> isize {
        self
    }
}

/// # Safety
/// As [`copy`], for a keyval of a Fortran language whose values are `T`.
unsafe fn copy_fortran<T: FortranValue>(
    keyval: &Keyval,
    object: *mut Object,
    number: i32,
    value: isize,
) -> Result<Option<isize>, i32> {
    // SAFETY: the application gave this function for this use.
    unsafe {
        let function: FortranCopy<T> = std::mem::transmute(keyval.copy);
        let (mut handle, mut number) = (fortran::to_fortran(object), number);
        let (mut extra, mut old) = (T::narrow(keyval.extra as isize), T::narrow(value));
        let (mut new, mut flag, mut error) = (T::default(), 0, 0);
        function(
            &raw mut handle,
            &raw mut number,
            &raw mut extra,
            &raw mut old,
            &raw mut new,
            &raw mut flag,
            &raw mut error,
        );
        match error {
            0 if flag != 0 => Ok(Some(new.widen())),
            0 => Ok(None),
            error => Err(error),
        }
    }
}

/// # Safety
/// As [`delete`], for a keyval of a Fortran language whose values are `T`.
unsafe fn delete_fortran<T: FortranValue>(
    keyval: &Keyval,
    object: *mut Object,
    number: i32,
    value: isize,
) -> i32 {
    // SAFETY: the application gave this function for this use.
    unsafe {
        let function: FortranDelete<T> = std::mem::transmute(keyval.delete);
        let (mut handle, mut number) = (fortran::to_fortran(object), number);
        let (mut extra, mut value) = (T::narrow(keyval.extra as isize), T::narrow(value));
        let mut error = 0;
        function(
            &raw mut handle,
            &raw mut number,
            &raw mut value,
            &raw mut extra,
            &raw mut error,
        );
        error
    }
}

/// # Safety
/// As [`copy`], for a keyval of C whose objects have handles of the kind `H`.
unsafe fn copy_c<H: Handle>(
    keyval: &Keyval,
    object: *mut Object,
    number: i32,
    value: isize,
) -> Result<Option<isize>, i32> {
    // SAFETY: the application gave this function for this use.
    unsafe {
        let function: Copier<H> = std::mem::transmute(keyval.copy);
        let Some(function) = function else {
            return Ok(None);
        };
        let (mut new, mut flag) = (0isize, 0);
        let error = function(
            H::of(object),
            number,
            keyval.extra as *mut c_void,
            value as *mut c_void,
            (&raw mut new).cast(),
            &raw mut flag,
        );
        match error {
            0 if flag != 0 => Ok(Some(new)),
            0 => Ok(None),
            error => Err(error),
        }
    }
}

/// # Safety
/// As [`delete`], for a keyval of C whose objects have handles of the kind `H`.
unsafe fn delete_c<H: Handle>(
    keyval: &Keyval,
    object: *mut Object,
    number: i32,
    value: isize,
) -> i32 {
    // SAFETY: the application gave this function for this use.
    unsafe {
        let function: Deleter<H> = std::mem::transmute(keyval.delete);
        function.map_or(0, |function| {
            let (value, extra) = (value as *mut c_void, keyval.extra as *mut c_void);
            function(H::of(object), number, value, extra)
        })
    }
}

/// Returns the value that an object's copy gets of an attribute, or nothing. An error is the application's.
///
/// # Safety
/// The keyval's functions must be the application's own for `object`'s kind; nothing may be locked.
pub unsafe fn copy(
    keyval: &Keyval,
    object: *mut Object,
    number: i32,
    value: isize,
) -> Result<Option<Value>, i32> {
    if keyval.copy == 0 {
        return Ok(None);
    }
    if DUPLICATES == Some(keyval.copy) {
        return Ok(Some(Value::new(keyval.language, value)));
    }
    // SAFETY: the functions are the application's own for this kind of object, by the caller's promise, and have the types of the keyval's language.
    let new = unsafe {
        match keyval.language {
            Language::FortranInteger => copy_fortran::<i32>(keyval, object, number, value)?,
            Language::FortranAddress => copy_fortran::<isize>(keyval, object, number, value)?,
            Language::C | Language::Cxx => match keyval.kind {
                HandleKind::Datatype => copy_c::<DatatypeHandle>(keyval, object, number, value)?,
                HandleKind::Window => copy_c::<WinHandle>(keyval, object, number, value)?,
                _ => copy_c::<CommHandle>(keyval, object, number, value)?,
            },
        }
    };
    Ok(new.map(|new| Value::new(keyval.language, new)))
}

/// Tells the application that an attribute of `object` goes. Returns the application's error, or 0.
///
/// # Safety
/// As [`copy`].
pub unsafe fn delete(attribute: &Attribute, object: *mut Object) -> i32 {
    let keyval = &*attribute.keyval;
    if keyval.delete == 0 {
        return 0;
    }
    // SAFETY: the functions are the application's own for this kind of object, by the caller's promise; nothing is locked, so they may call MPI.
    if let Some(error) = unsafe { super::proxy::delete(attribute, object) } {
        return error;
    }
    let value = attribute.value.seen_by(keyval.language);
    // SAFETY: the functions are the application's own for this kind of object, by the caller's promise, and have the types of the keyval's language.
    unsafe {
        match keyval.language {
            Language::FortranInteger => {
                delete_fortran::<i32>(keyval, object, attribute.number, value)
            }
            Language::FortranAddress => {
                delete_fortran::<isize>(keyval, object, attribute.number, value)
            }
            Language::C | Language::Cxx => match keyval.kind {
                HandleKind::Datatype => {
                    delete_c::<DatatypeHandle>(keyval, object, attribute.number, value)
                }
                HandleKind::Window => {
                    delete_c::<WinHandle>(keyval, object, attribute.number, value)
                }
                _ => delete_c::<CommHandle>(keyval, object, attribute.number, value),
            },
        }
    }
}
