//! The functions on infos.

use std::ffi::{CStr, c_char, c_int};

use stillpoint_wrappers::gate::HandleKind;

use super::pairs::Pairs;
use super::{change, create, pairs_of, read};
use crate::ground::abi::{self, InfoHandle, PlaceOf};
use crate::ground::handle;
use crate::ground::object::Info;
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, class, give, live};

/// A key of the application's, within the length that its MPI allows.
///
/// # Safety
/// `key` must be null or a C string.
unsafe fn key_of<'a>(key: *const c_char) -> MpiResult<&'a [u8]> {
    if key.is_null() {
        return Err(class::INFO_KEY);
    }
    // SAFETY: the key is not null here, so it is a C string, by the caller's promise, and lives as long as the call.
    let key = unsafe { CStr::from_ptr(key) }.to_bytes();
    if key.is_empty() || key.len() > abi::MAX_INFO_KEY {
        return Err(class::INFO_KEY);
    }
    Ok(key)
}

/// `MPI_Info_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_create(place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: the place is not null when it is written, and MPI demands that it is writable.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_create", || {
            if place.is_null() {
                return Err(class::INFO);
            }
            give(place, create(Pairs::new()))
        })
    }
}

/// `MPI_Info_dup`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_dup(info: Info, place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: `live` looks at the info, and `give` refuses a null place.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_dup", || {
            live(info, HandleKind::Info)?;
            give(place, create(pairs_of(info)?))
        })
    }
}

/// `MPI_Info_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_free(place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `live` looks at it; its holder of the info ends here.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_free", || {
            if place.is_null() {
                return Err(class::INFO);
            }
            let info = live(place.get(), HandleKind::Info)?;
            if (*info).predefined() {
                return Err(class::INFO);
            }
            place.set(abi::predefined(HandleKind::Info, 304));
            handle::release(info);
            Ok(())
        })
    }
}

/// `MPI_Info_set`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_set(info: Info, key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: `live` looks at the info; MPI demands two C strings, and null ones are refused before they are read.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_set", || {
            live(info, HandleKind::Info)?;
            let key = key_of(key)?;
            if value.is_null() {
                return Err(class::INFO_VALUE);
            }
            let value = CStr::from_ptr(value).to_bytes();
            // MPICH takes a value of nothing.
            let too_short = value.is_empty() && cfg!(application = "openmpi");
            if too_short || value.len() > abi::MAX_INFO_VAL {
                return Err(class::INFO_VALUE);
            }
            change(info, |pairs| pairs.set(key, value))
        })
    }
}

/// `MPI_Info_delete`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_delete(info: Info, key: *const c_char) -> c_int {
    // SAFETY: `live` looks at the info; MPI demands that `key` is a C string, and `key_of` refuses null.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_delete", || {
            live(info, HandleKind::Info)?;
            let key = key_of(key)?;
            if !change(info, |pairs| pairs.delete(key))? {
                return Err(class::INFO_NOKEY);
            }
            Ok(())
        })
    }
}

/// `MPI_Info_get`: at most `room` characters of the value.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_get(
    info: Info,
    key: *const c_char,
    room: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: `live` looks at the info; MPI demands room for `room` characters and the nul at `value`, and null places are refused.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_get", || {
            live(info, HandleKind::Info)?;
            let key = key_of(key)?;
            if room < 0 {
                return Err(class::INFO_VALUE);
            }
            if value.is_null() || flag.is_null() {
                return Err(class::ARG);
            }
            let found = read(info, |pairs| pairs.get(key).map(<[u8]>::to_vec))?;
            *flag = c_int::from(found.is_some());
            if let Some(found) = found {
                copy(&found, value, room as usize);
            }
            Ok(())
        })
    }
}

/// `MPI_Info_get_string`: as much of the value as `length` bytes hold with the nul, and how many all of it takes.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_get_string(
    info: Info,
    key: *const c_char,
    length: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: `live` looks at the info; MPI demands `*length` bytes at `value`, of which the nul takes one; the other places are not null.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_get_string", || {
            live(info, HandleKind::Info)?;
            let key = key_of(key)?;
            if length.is_null() || flag.is_null() || *length < 0 {
                return Err(class::ARG);
            }
            let found = read(info, |pairs| pairs.get(key).map(<[u8]>::to_vec))?;
            *flag = c_int::from(found.is_some());
            if let Some(found) = found {
                let room = *length as usize;
                *length = found.len() as c_int + 1;
                if room > 0 && !value.is_null() {
                    copy(&found, value, room - 1);
                }
            }
            Ok(())
        })
    }
}

/// Copies at most `room` characters and the nul that ends them.
///
/// # Safety
/// `to` must have room for `room` characters and one more.
unsafe fn copy(text: &[u8], to: *mut c_char, room: usize) {
    let bytes = text.len().min(room);
    // SAFETY: at most `room` characters and a nul are written, for which `to` has room, by the caller's promise.
    unsafe {
        to.cast::<u8>().copy_from(text.as_ptr(), bytes);
        to.add(bytes).write(0);
    }
}

/// `MPI_Info_get_valuelen`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_get_valuelen(
    info: Info,
    key: *const c_char,
    length: *mut c_int,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: `live` looks at the info; neither place is null when it is written, and MPI demands that both are writable.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_get_valuelen", || {
            live(info, HandleKind::Info)?;
            let key = key_of(key)?;
            if length.is_null() || flag.is_null() {
                return Err(class::ARG);
            }
            let found = read(info, |pairs| pairs.get(key).map(<[u8]>::len))?;
            *flag = c_int::from(found.is_some());
            if let Some(found) = found {
                *length = found as c_int;
            }
            Ok(())
        })
    }
}

/// `MPI_Info_get_nkeys`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_get_nkeys(info: Info, count: *mut c_int) -> c_int {
    // SAFETY: `live` looks at the info, and `give` refuses a null place.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_get_nkeys", || {
            live(info, HandleKind::Info)?;
            give(count, read(info, Pairs::len)? as c_int)
        })
    }
}

/// `MPI_Info_get_nthkey`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_get_nthkey(info: Info, place: c_int, key: *mut c_char) -> c_int {
    // SAFETY: `live` looks at the info; MPI demands room for its longest key at `key`, the nul included, and null is refused.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Info_get_nthkey", || {
            live(info, HandleKind::Info)?;
            if key.is_null() || place < 0 {
                return Err(class::ARG);
            }
            let found = read(info, |pairs| pairs.key(place as usize).map(<[u8]>::to_vec))?;
            copy(&found.ok_or(class::INFO_KEY)?, key, abi::MAX_INFO_KEY - 1);
            Ok(())
        })
    }
}
