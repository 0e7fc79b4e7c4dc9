//! Infos of the lower half: made when one is asked for, read when one comes up.

use std::ffi::{CStr, c_char};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::pairs::Pairs;
use super::{body, create};
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::outcome::{MpiResult, check};
use crate::objects::rehearsal_outcome::{Tried, failed};

/// Room for any key of any MPI (255 in the standard ABI).
const KEY_ROOM: usize = 256;
/// Room for any value (1023 in the standard ABI).
const VALUE_ROOM: usize = 1024;

/// Adds the nul that C strings end with.
fn terminated(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    text.push(0);
    text
}

/// Makes an info of the lower half.
///
/// # Safety
/// Inside a stub.
unsafe fn make(pairs: &Pairs) -> MpiResult<Word> {
    let mut word = 0;
    // SAFETY: inside; the strings end with a nul.
    unsafe {
        check(crossing::cross(|d| (d.info_create)(&raw mut word)))?;
        // An empty hint says nothing, and some libraries refuse it.
        for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            let (key, value) = (terminated(key), terminated(value));
            let (key, value) = (key.as_ptr().cast(), value.as_ptr().cast());
            check(crossing::cross(|d| (d.info_set)(word, key, value)))?;
        }
    }
    Ok(word)
}

/// Reads an info of the lower half.
///
/// # Safety
/// Inside a stub; `word` must be such an info.
pub unsafe fn read(word: Word) -> MpiResult<Pairs> {
    let mut pairs = Pairs::new();
    let mut count = 0;
    // SAFETY: inside; the buffers have room for what the standard allows.
    unsafe {
        check(crossing::cross(|d| {
            (d.info_get_nkeys)(word, &raw mut count)
        }))?;
        for place in 0..count {
            let mut key = [0 as c_char; KEY_ROOM];
            let mut value = [0 as c_char; VALUE_ROOM];
            let mut flag = 0;
            let (name, text) = (key.as_mut_ptr(), value.as_mut_ptr());
            check(crossing::cross(|d| (d.info_get_nthkey)(word, place, name)))?;
            let room = VALUE_ROOM as i32 - 1;
            check(crossing::cross(|d| {
                (d.info_get)(word, name, room, text, &raw mut flag)
            }))?;
            if flag != 0 {
                let (key, value) = (CStr::from_ptr(name), CStr::from_ptr(text));
                pairs.set(key.to_bytes(), value.to_bytes());
            }
        }
    }
    Ok(pairs)
}

/// Makes an object of an info that came up from the lower half, which is freed there.
///
/// # Safety
/// As [`read`]; the info is ours.
pub unsafe fn adopt(word: Word) -> MpiResult<*mut Object> {
    let mut word = word;
    // SAFETY: the info is the lower half's, and ours, by the caller's promise; it is freed once, when all pairs are copied.
    unsafe {
        let pairs = read(word)?;
        crossing::cross(|d| (d.info_free)(&raw mut word));
        Ok(create(pairs))
    }
}

/// The word under which the lower half knows an info as it is now.
///
/// # Safety
/// `object` must be a live info; inside a stub.
pub unsafe fn word(object: *mut Object) -> MpiResult<Word> {
    // SAFETY: the info is alive, by the caller's promise; its word is exchanged under the body's lock, and the old one is ours to free.
    unsafe {
        if (*object).predefined() {
            return Ok((*object).lower);
        }
        let Some(body) = body(object) else {
            return Ok((*object).lower);
        };
        let mut body = body.lock();
        if body.stale || (*object).lower == 0 {
            let mut old = std::mem::replace(&mut (*object).lower, make(&body.pairs)?);
            body.stale = false;
            if old != 0 {
                crossing::cross(|d| (d.info_free)(&raw mut old));
            }
        }
        Ok((*object).lower)
    }
}

/// Makes again, in a fresh lower half, the infos that the old one had.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rebuild() -> MpiResult {
    for object in handle::live(HandleKind::Info) {
        // SAFETY: `live` gives live infos, and only this thread runs.
        unsafe {
            if std::mem::take(&mut (*object).lower) != 0 {
                self::word(object)?;
            }
        }
    }
    Ok(())
}

/// Makes each info that [`rebuild`] would make, and frees it again.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rehearse() -> Tried {
    for object in handle::live(HandleKind::Info) {
        // SAFETY: a live info; the word is ours.
        unsafe {
            let Some(body) = body(object).filter(|_| (*object).lower != 0) else {
                continue;
            };
            let mut word = make(&body.lock().pairs)
                .map_err(|error| failed(&format!("info {}", (*object).id), error))?;
            crossing::cross(|d| (d.info_free)(&raw mut word));
        }
    }
    Ok(())
}
