//! Error classes, codes and strings that the application adds. All is kept here; the lower half knows only
//! the predefined ones, and of these perhaps not all ([`classes`]).

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering;

use crate::ground::lock::SpinLock;
use crate::ground::{abi, crossing};
use crate::objects::attribute;
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, check, class, give};

mod classes;

struct Added {
    /// The class of a code; a class is its own.
    class: c_int,
    text: Vec<u8>,
}

struct Codes {
    added: BTreeMap<c_int, Added>,
    last: c_int,
}

static CODES: SpinLock<Codes> = SpinLock::new(Codes {
    added: BTreeMap::new(),
    last: abi::ERR_LASTCODE,
});

/// The highest code in use: `MPI_LASTUSEDCODE`.
pub fn last_used() -> c_int {
    CODES.lock().last
}

fn add(of: Option<c_int>) -> c_int {
    let mut codes = CODES.lock();
    codes.last += 1;
    let code = codes.last;
    let class = of.unwrap_or(code);
    let text = Vec::new();
    codes.added.insert(code, Added { class, text });
    // Still locked, so that the highest code is noted last.
    attribute::note_last_used_code(code);
    code
}

/// `MPI_Add_error_class`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn add_error_class(place: *mut c_int) -> c_int {
    // SAFETY: `give` refuses a null place, and any other is writable, as MPI demands.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Add_error_class", || {
            give(place, add(None))
        })
    }
}

/// `MPI_Add_error_code`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn add_error_code(of: c_int, place: *mut c_int) -> c_int {
    // SAFETY: `give` refuses a null place; the code is only a number.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Add_error_code", || {
            let known = of <= abi::ERR_LASTCODE || CODES.lock().added.contains_key(&of);
            if of < 0 || !known {
                return Err(class::ARG);
            }
            give(place, add(Some(of)))
        })
    }
}

/// `MPI_Add_error_string`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn add_error_string(code: c_int, text: *const c_char) -> c_int {
    // SAFETY: a text that is not null is a C string, as MPI demands; it is copied.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Add_error_string", || {
            if text.is_null() {
                return Err(class::ARG);
            }
            let text = CStr::from_ptr(text).to_bytes();
            if text.len() > abi::MAX_ERROR_STRING {
                return Err(class::ARG);
            }
            let mut codes = CODES.lock();
            let added = codes.added.get_mut(&code).ok_or(class::ARG)?;
            added.text = text.to_vec();
            Ok(())
        })
    }
}

/// Ends something that the application has added: a class, a code, or the text of either.
#[cfg(not(application = "openmpi"))]
fn remove(code: c_int, allowed: impl FnOnce(&Codes, &Added) -> bool) -> MpiResult<()> {
    let mut codes = CODES.lock();
    let added = codes.added.get(&code).ok_or(class::ARG)?;
    if !added.text.is_empty() || !allowed(&codes, added) {
        return Err(class::ARG);
    }
    codes.added.remove(&code);
    Ok(())
}

/// `MPI_Remove_error_class`. `MPI_LASTUSEDCODE` stays: a number is never given twice.
///
/// # Safety
/// Inside or outside a stub; no place is named.
#[cfg(not(application = "openmpi"))]
pub unsafe fn remove_error_class(errorclass: c_int) -> c_int {
    // SAFETY: no object is named, and the codes are changed under their lock.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Remove_error_class", || {
            remove(errorclass, |codes, added| {
                let codes_of = codes.added.values().filter(|it| it.class == errorclass);
                added.class == errorclass && codes_of.count() == 1
            })
        })
    }
}

/// `MPI_Remove_error_code`.
///
/// # Safety
/// As [`remove_error_class`].
#[cfg(not(application = "openmpi"))]
pub unsafe fn remove_error_code(errorcode: c_int) -> c_int {
    // SAFETY: no object is named, and `remove` changes the codes under their lock.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Remove_error_code", || {
            remove(errorcode, |_, added| added.class != errorcode)
        })
    }
}

/// `MPI_Remove_error_string`.
///
/// # Safety
/// As [`remove_error_class`].
#[cfg(not(application = "openmpi"))]
pub unsafe fn remove_error_string(code: c_int) -> c_int {
    // SAFETY: no object is named; the text is cleared under the codes' lock.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Remove_error_string", || {
            let mut codes = CODES.lock();
            let added = codes.added.get_mut(&code).ok_or(class::ARG)?;
            added.text.clear();
            Ok(())
        })
    }
}

/// `MPI_Error_class`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn error_class(code: c_int, place: *mut c_int) -> c_int {
    // SAFETY: `give` refuses a null place; the lower half writes to a local variable.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Error_class", || {
            let own = CODES.lock().added.get(&code).map(|added| added.class);
            if let Some(class) = own {
                return give(place, class);
            }
            let mut class = 0;
            let neutral = predefined(code)?;
            if classes::is_one(neutral) {
                return give(place, code);
            }
            is_running()?;
            check(crossing::cross(|d| {
                (d.error_class)(neutral, &raw mut class)
            }))?;
            give(place, abi::error_from_neutral(class))
        })
    }
}

/// Whether the library below may be asked: outside of MPI only this library's own knowledge is available.
fn is_running() -> MpiResult {
    match crossing::gate().mpi_active.load(Ordering::Relaxed) {
        0 => Err(class::ARG),
        _ => Ok(()),
    }
}

/// A code of MPI's own, made neutral.
fn predefined(code: c_int) -> MpiResult<i32> {
    if !(0..=abi::ERR_LASTCODE).contains(&code) {
        return Err(class::ARG);
    }
    Ok(abi::error_to_neutral(code))
}

/// Gives the application a text of ours.
///
/// # Safety
/// `text` must have room for the longest error string of the application's MPI, `length` be null or writable.
unsafe fn give_text(own: &[u8], text: *mut c_char, length: *mut c_int) -> MpiResult {
    let bytes = own.len().min(abi::MAX_ERROR_STRING - 1);
    // SAFETY: `text` has room for the longest text, by the caller's promise, and the nul fits too, since `bytes` is less than that.
    unsafe {
        text.cast::<u8>().copy_from(own.as_ptr(), bytes);
        text.add(bytes).write(0);
        give(length, bytes as c_int)
    }
}

/// `MPI_Error_string`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn error_string(code: c_int, text: *mut c_char, length: *mut c_int) -> c_int {
    // SAFETY: MPI demands room for its longest error string at `text`, and a writable length; null places are refused; `buffer` holds the longest neutral text.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Error_string", || {
            if text.is_null() || length.is_null() {
                return Err(class::ARG);
            }
            let own = CODES.lock().added.get(&code).map(|a| a.text.clone());
            if let Some(own) = own {
                return give_text(&own, text, length);
            }
            let neutral = predefined(code)?;
            if is_running().is_err() && classes::is_one(neutral) {
                return give_text(classes::early_text(neutral).as_bytes(), text, length);
            }
            is_running()?;
            if classes::is_one(neutral) && !classes::is_known_below(neutral) {
                return give_text(classes::text(neutral).as_bytes(), text, length);
            }
            // The neutral form allows longer strings than the application has room for.
            let mut buffer = [0 as c_char; 512];
            let mut bytes = 0;
            let place = buffer.as_mut_ptr();
            check(crossing::cross(|d| {
                (d.error_string)(neutral, place, &raw mut bytes)
            }))?;
            let bytes = (bytes.max(0) as usize).min(abi::MAX_ERROR_STRING - 1);
            text.copy_from(buffer.as_ptr(), bytes);
            text.add(bytes).write(0);
            give(length, bytes as c_int)
        })
    }
}
