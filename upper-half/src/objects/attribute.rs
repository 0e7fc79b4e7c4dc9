//! Attributes: keyvals, values, and the application's copy and delete functions, all above the crossing.
//!
//! The lower half knows no attribute of the application's. The values of MPI's own attributes are
//! copied into our own memory when MPI has started, so that no address of the lower half ever gets out.

mod callback;
mod calls;
mod predefined;
mod proxy;
pub mod store;

use stillpoint_wrappers::gate::HandleKind;

pub use calls::*;
pub use predefined::{
    SmallerBound, describe_window, initialise, note_last_used_code, say_memory,
    under_another_library,
};

use crate::ground::object::Object;
use store::{Attribute, Language, STORE, Value};

/// The error class for a keyval that does not exist, or is not for this kind: Open MPI says `MPI_ERR_OTHER`.
const ERR_KEYVAL: i32 = crate::objects::outcome::class::OTHER;

/// Hangs a value on an object; an older one with the same keyval is deleted first. `Err` is an error class, or
/// the error of the application's delete function.
///
/// # Safety
/// `object` must be a live object of the kind; inside a stub, nothing locked.
pub unsafe fn set(
    object: *mut Object,
    kind: HandleKind,
    number: i32,
    value: Value,
    by_application: bool,
) -> Result<(), i32> {
    let keyval = STORE.lock().keyval(kind, number).ok_or(ERR_KEYVAL)?;
    if keyval.predefined && by_application {
        return Err(ERR_KEYVAL);
    }
    let old = STORE.lock().take(object as usize, number);
    if let Some(old) = old {
        // SAFETY: the keyval is for this kind of object; nothing is locked.
        let error = unsafe { callback::delete(&old, object) };
        if error != 0 {
            STORE.lock().set(object as usize, old);
            return Err(error);
        }
    }
    let attribute = Attribute {
        number,
        keyval,
        value,
    };
    STORE.lock().set(object as usize, attribute);
    Ok(())
}

/// An object's value as a language sees it, or `None` if it has none. `Err` is an error class.
///
/// # Safety
/// Inside a stub, nothing locked.
pub unsafe fn get(
    object: *mut Object,
    kind: HandleKind,
    number: i32,
    language: Language,
) -> Result<Option<isize>, i32> {
    // SAFETY: the caller promises it.
    let object = unsafe {
        let object = predefined::told_by(object, kind, number);
        predefined::universe(object, number);
        object
    };
    let store = STORE.lock();
    if let Some(attribute) = store.get(object as usize, number) {
        predefined::note_told(number);
        return match attribute.keyval.kind == kind {
            true => Ok(Some(attribute.value.seen_by(language))),
            false => Err(ERR_KEYVAL),
        };
    }
    store.keyval(kind, number).map(|_| None).ok_or(ERR_KEYVAL)
}

/// Takes one attribute off an object. `Err` as [`set`].
///
/// # Safety
/// As [`set`].
pub unsafe fn delete(object: *mut Object, kind: HandleKind, number: i32) -> Result<(), i32> {
    let keyval = STORE.lock().keyval(kind, number).ok_or(ERR_KEYVAL)?;
    if keyval.predefined {
        return Err(ERR_KEYVAL);
    }
    let Some(old) = STORE.lock().take(object as usize, number) else {
        // MPICH accepts that.
        return match cfg!(application = "openmpi") {
            true => Err(ERR_KEYVAL),
            false => Ok(()),
        };
    };
    // SAFETY: the attribute was the object's and is in no table now; nothing is locked, by the caller's promise, so its function may call MPI.
    match unsafe { callback::delete(&old, object) } {
        0 => {
            drop((old, keyval));
            STORE.lock().collect(number);
            Ok(())
        }
        error => {
            STORE.lock().set(object as usize, old);
            Err(error)
        }
    }
}

/// Gives `new`, a copy of `old`, the attributes that the copy functions grant it. `Err` is the error of one of
/// them; the copy then has those that were copied before.
///
/// # Safety
/// As [`set`], for both.
pub unsafe fn copy_all(old: *mut Object, new: *mut Object) -> Result<(), i32> {
    let numbers = STORE.lock().numbers(old as usize);
    for number in numbers {
        let (keyval, value) = {
            let store = STORE.lock();
            let Some(attribute) = store.get(old as usize, number) else {
                continue;
            };
            let keyval = attribute.keyval.clone();
            if let Some(proxied) = proxy::Proxied::copying(attribute) {
                drop(store);
                // SAFETY: the keyval's functions are the application's for this kind of object, and nothing is locked, by the caller's promise.
                if let Some(value) = unsafe { proxied.copy(&keyval, old)? } {
                    let attribute = Attribute {
                        number,
                        keyval,
                        value,
                    };
                    STORE.lock().set(new as usize, attribute);
                }
                continue;
            }
            let value = attribute.value.seen_by(keyval.language);
            (keyval, value)
        };
        if keyval.predefined {
            if !predefined::is_copied(number) {
                continue;
            }
            let value = Value::new(Language::FortranInteger, value);
            let attribute = Attribute {
                number,
                keyval,
                value,
            };
            STORE.lock().set(new as usize, attribute);
            continue;
        }
        // SAFETY: the keyval is for objects of this kind; nothing is locked.
        let copied = unsafe { callback::copy(&keyval, old, number, value)? };
        if let Some(value) = copied {
            let attribute = Attribute {
                number,
                keyval,
                value,
            };
            STORE.lock().set(new as usize, attribute);
        }
    }
    Ok(())
}

/// Takes all attributes off an object, newest first. The first error of a delete function ends it, and is
/// returned as `Err`.
///
/// # Safety
/// As [`set`].
pub unsafe fn delete_all(object: *mut Object) -> Result<(), i32> {
    loop {
        let Some(number) = STORE.lock().numbers(object as usize).pop() else {
            return Ok(());
        };
        let Some(attribute) = STORE.lock().take(object as usize, number) else {
            continue;
        };
        let error = if attribute.keyval.predefined {
            0
        } else {
            // SAFETY: the attribute was taken off the object, by this call alone; nothing is locked, by the caller's promise, so its function may call MPI.
            unsafe { callback::delete(&attribute, object) }
        };
        if error != 0 {
            STORE.lock().set(object as usize, attribute);
            return Err(error);
        }
        drop(attribute);
        STORE.lock().collect(number);
    }
}

/// Forgets the attributes of an object that ends without its delete functions being called.
pub fn forget(object: *mut Object) {
    let mut store = STORE.lock();
    while let Some(number) = store.numbers(object as usize).pop() {
        store.take(object as usize, number);
    }
}
