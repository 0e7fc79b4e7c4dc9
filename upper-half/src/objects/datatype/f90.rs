//! Datatypes for Fortran's selected kinds: the same question always gets the same handle, which
//! cannot be freed (MPI 5.0, section 19.1.9).

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};

use super::recipe::{Combiner, Recipe};
use super::{body, create};
use crate::ground::abi::{DatatypeHandle, PlaceOf};
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, class, give};

/// Handles that were given out, by combiner, precision and range.
static KNOWN: SpinLock<BTreeMap<(i32, i32, i32), usize>> = SpinLock::new(BTreeMap::new());

/// # Safety
/// As the MPI function of that name.
unsafe fn selected(
    combiner: Combiner,
    arguments: Vec<c_int>,
    place: PlaceOf<DatatypeHandle>,
    name: &'static CStr,
) -> c_int {
    // SAFETY: the place is not null when it is written, and MPI demands that it is writable; datatypes that are known here last for ever.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
            let key = (combiner as i32, argument(0), argument(1));
            if place.is_null() {
                return Err(class::ARG);
            }
            give(
                place,
                known(key, || Recipe::new(combiner, arguments, vec![]))?,
            )
        })
    }
}

/// The handle for a combiner, precision and range. The lock is held while it is made, which asks only this process: threads that ask at once get the same one.
///
/// # Safety
/// Inside a stub.
unsafe fn known(key: (i32, i32, i32), recipe: impl FnOnce() -> Recipe) -> MpiResult<*mut Object> {
    let mut known = KNOWN.lock();
    if let Some(known) = known.get(&key) {
        return Ok(*known as *mut Object);
    }
    // SAFETY: inside, by the caller's promise; the recipe has no datatypes.
    let new = unsafe { create(recipe())? };
    // SAFETY: the datatype was made just now.
    if let Some(body) = unsafe { body(new) } {
        body.notes.lock().lasting = true;
    }
    known.insert(key, new as usize);
    Ok(new)
}

/// `MPI_Type_create_f90_real`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_f90_real(p: c_int, r: c_int, place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: `selected` looks at the place; precision and range are plain numbers.
    unsafe {
        selected(
            Combiner::F90Real,
            vec![p, r],
            place,
            c"MPI_Type_create_f90_real",
        )
    }
}

/// `MPI_Type_create_f90_complex`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_f90_complex(p: c_int, r: c_int, place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: `selected` looks at the place, and the real MPI at precision and range.
    unsafe {
        selected(
            Combiner::F90Complex,
            vec![p, r],
            place,
            c"MPI_Type_create_f90_complex",
        )
    }
}

/// `MPI_Type_create_f90_integer`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_f90_integer(r: c_int, place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: `selected` looks at the place, and the real MPI at the range.
    unsafe {
        selected(
            Combiner::F90Integer,
            vec![r],
            place,
            c"MPI_Type_create_f90_integer",
        )
    }
}
