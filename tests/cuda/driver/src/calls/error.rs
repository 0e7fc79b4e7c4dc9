//! Names of results, and versions.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::give;
use crate::code::{self, ALL, Code};
use crate::driver::{self, look};

fn text(
    of: Code,
    place: *mut *const c_char,
    which: impl Fn(&(Code, &'static CStr, &'static CStr)) -> &'static CStr,
) -> Code {
    let known = ALL.iter().find(|(code, _, _)| *code == of);
    let text = known.map_or(std::ptr::null(), |known| which(known).as_ptr());
    // SAFETY: the program's place for a pointer.
    let given = unsafe { give(place, text) };
    match known {
        Some(_) => code::of(given),
        None => code::INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(error: Code, name: *mut *const c_char) -> Code {
    text(error, name, |(_, name, _)| name)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(error: Code, string: *mut *const c_char) -> Code {
    text(error, string, |(_, _, string)| string)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Code {
    match flags {
        0 => code::of(driver::init()),
        _ => code::INVALID_VALUE,
    }
}

/// The version comes from the description, so without devices there is none.
#[unsafe(no_mangle)]
pub extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    if let code @ 1.. = code::of(driver::init()) {
        return code;
    }
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(version, driver.node.cuda) })
}
