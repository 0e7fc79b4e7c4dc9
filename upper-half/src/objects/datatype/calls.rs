//! Committing and freeing datatypes.

use std::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::{body, usable};
use crate::ground::abi::{self, DatatypeHandle, PlaceOf};
use crate::ground::{crossing, handle};
use crate::objects::attribute;
use crate::objects::errhandler::run;
use crate::objects::outcome::{check, class};

/// `MPI_Type_commit`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_commit(place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `usable` looks at it; the word is a local copy.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_commit", || {
            if place.is_null() {
                return Err(class::TYPE);
            }
            let datatype = usable(place.get())?;
            let mut word: Word = (*datatype).lower;
            check(crossing::cross(|d| (d.type_commit)(&raw mut word)))?;
            if let Some(body) = body(datatype) {
                body.notes.lock().committed = true;
            }
            Ok(())
        })
    }
}

/// `MPI_Type_free`: the delete functions of its attributes are called now, even if it has other holders.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_free(place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `usable` looks at it; only its own holder ends here.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_free", || {
            if place.is_null() {
                return Err(class::TYPE);
            }
            let datatype = usable(place.get())?;
            if (*datatype).predefined()
                || body(datatype).is_some_and(|body| body.notes.lock().lasting)
            {
                return Err(class::TYPE);
            }
            attribute::delete_all(datatype).map_err(abi::error_to_neutral)?;
            place.set(abi::predefined(HandleKind::Datatype, 512));
            handle::release(datatype);
            Ok(())
        })
    }
}
