//! Names of datatypes: the application's own are kept here, MPI's own are asked for below.

use std::convert::Infallible;
use std::ffi::{CStr, c_char, c_int};

use super::{Body, Notes, body, usable};
use crate::ground::abi;
use crate::ground::crossing;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Datatype, Object};
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, check, class, give};

/// Copies a name of at most [`abi::MAX_OBJECT_NAME`] characters, the nul included.
///
/// # Safety
/// `text` must have room for that many characters, `length` for a number; or be null.
pub unsafe fn give_name(name: &[u8], text: *mut c_char, length: *mut c_int) -> MpiResult {
    if text.is_null() || length.is_null() {
        return Err(class::ARG);
    }
    let bytes = name.len().min(abi::MAX_OBJECT_NAME - 1);
    // SAFETY: neither place is null here, so both have room, by the caller's promise; the nul fits too, since `bytes` is less than that.
    unsafe {
        text.cast::<u8>().copy_from(name.as_ptr(), bytes);
        text.add(bytes).write(0);
        give(length, bytes as c_int)
    }
}

/// A name of the application's, cut to the length that its MPI keeps.
///
/// # Safety
/// `text` must be null or a C string.
pub unsafe fn take_name(text: *const c_char) -> MpiResult<Vec<u8>> {
    if text.is_null() {
        return Err(class::ARG);
    }
    // SAFETY: the text is not null here, so it is a C string, by the caller's promise; it is copied.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let bytes = text.len().min(abi::MAX_OBJECT_NAME - 1);
    Ok(text.get(..bytes).unwrap_or(text).to_vec())
}

/// Asks the lower half for a name.
///
/// # Safety
/// Inside a stub.
pub unsafe fn name_below(
    ask: impl FnOnce(&'static stillpoint_wrappers::dispatch::Dispatch, *mut c_char, *mut c_int) -> i32,
) -> MpiResult<Vec<u8>> {
    // 128: the standard ABI's longest name.
    let mut text = [0 as c_char; 256];
    let mut bytes = 0;
    let place = text.as_mut_ptr();
    // SAFETY: inside; the text has room for any MPI's longest name, and ends with a nul.
    unsafe {
        check(crossing::cross(|d| ask(d, place, &raw mut bytes)))?;
        Ok(CStr::from_ptr(place).to_bytes().to_vec())
    }
}

/// `MPI_Type_get_name`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_get_name(datatype: Datatype, text: *mut c_char, length: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the datatype; MPI demands room for its longest name at `text`, and `give_name` refuses null places.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_get_name", || {
            let datatype = usable(datatype)?;
            let own = body(datatype).and_then(|body| body.notes.lock().name.clone());
            let name = match own {
                Some(name) => name,
                None => {
                    let word = (*datatype).lower;
                    name_below(|d, text, length| (d.type_get_name)(word, text, length))?
                }
            };
            give_name(&name, text, length)
        })
    }
}

/// `MPI_Type_set_name`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_set_name(datatype: Datatype, text: *const c_char) -> c_int {
    // SAFETY: `usable` looks at the datatype; MPI demands that `text` is a C string, and `take_name` refuses null.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_set_name", || {
            let datatype = usable(datatype)?;
            let name = take_name(text)?;
            notes_of(datatype, |notes| notes.name = Some(name));
            Ok(())
        })
    }
}

/// Changes a datatype's notes; a predefined one gets a body first.
///
/// # Safety
/// `datatype` must be a live datatype.
unsafe fn notes_of(datatype: *mut Object, change: impl FnOnce(&mut Notes)) {
    let new = || {
        Ok::<_, Infallible>(Body {
            recipe: None,
            notes: SpinLock::new(Notes::default()),
        })
    };
    // SAFETY: the datatype is alive, by the caller's promise; a datatype's own part is the box of a `Body`.
    let Ok(body) = unsafe { Object::own_part_or(datatype, new) };
    change(&mut body.notes.lock());
}
