//! The application's own arguments for a datatype that is made of other parts: a constructor with numbers that an int does not hold. Only
//! `MPI_Type_get_envelope_c` and `MPI_Type_get_contents_c` tell them (MPI 5.0, section 5.1.13).

use std::ffi::c_int;

use super::recipe::Combiner;
use super::{body, usable};
use crate::ground::abi::{self, Count, DatatypeHandle, PlaceOf};
use crate::ground::handle;
use crate::ground::object::{Datatype, Object};
use crate::objects::errhandler::run;
use crate::objects::outcome::{class, give};

/// A constructor's arguments, as the application gave them.
pub struct ConstructorArguments {
    pub combiner: Combiner,
    pub integers: Vec<c_int>,
    /// Counts, lengths and displacements, in the standard's order.
    pub counts: Vec<Count>,
    pub datatypes: Vec<*mut Object>,
}

/// Keeps the arguments of a new datatype, which then holds their datatypes.
///
/// # Safety
/// Inside a stub; a live datatype that no other thread knows yet, and live datatypes.
pub unsafe fn ask(datatype: *mut Object, asked: ConstructorArguments) {
    // SAFETY: the datatypes are alive, by the caller's promise; the new one holds the others from here on, and no other thread knows it yet.
    unsafe {
        if let Some(body) = body(datatype) {
            for part in &asked.datatypes {
                handle::retain(*part);
            }
            body.notes.lock().asked = Some(Box::new(asked));
        }
    }
}

/// Whether a datatype is one of these.
///
/// # Safety
/// A live datatype.
pub(super) unsafe fn is_asked(datatype: *mut Object) -> bool {
    // SAFETY: the datatype is alive, by the caller's promise; its notes are read under their lock.
    unsafe { body(datatype) }.is_some_and(|body| body.notes.lock().asked.is_some())
}

/// [`is_asked`] for a handle of the application's.
///
/// # Safety
/// Inside a stub; null or a handle.
pub unsafe fn was_asked(datatype: Datatype) -> bool {
    // SAFETY: `datatype` is null or a handle, by the caller's promise, and `usable` looks at it first.
    unsafe { usable(datatype).is_ok_and(|datatype| is_asked(datatype)) }
}

/// `MPI_Type_get_envelope_c` of such a datatype.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_get_envelope_asked(
    datatype: Datatype,
    [integers, addresses, counts, datatypes]: [*mut Count; 4],
    combiner: *mut c_int,
) -> c_int {
    // SAFETY: `usable` looks at the datatype; MPI demands writable places, and `give` refuses null ones.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_get_envelope_c", || {
            let body = body(usable(datatype)?).ok_or(class::TYPE)?;
            let notes = body.notes.lock();
            let asked = notes.asked.as_ref().ok_or(class::TYPE)?;
            give(integers, asked.integers.len() as Count)?;
            give(addresses, 0)?;
            give(counts, asked.counts.len() as Count)?;
            give(datatypes, asked.datatypes.len() as Count)?;
            give(combiner, abi::combiner_from_neutral(asked.combiner as i32))
        })
    }
}

/// `MPI_Type_get_contents_c` of such a datatype.
///
/// # Safety
/// As the MPI function; the arrays have as much room as is said.
pub unsafe fn type_get_contents_asked(
    datatype: Datatype,
    [max_integers, max_counts, max_datatypes]: [Count; 3],
    integers: *mut c_int,
    counts: *mut Count,
    datatypes: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `usable` looks at the datatype; each array has room for what is written, or the call is refused, as MPI demands of the maxima.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_get_contents_c", || {
            let body = body(usable(datatype)?).ok_or(class::TYPE)?;
            let notes = body.notes.lock();
            let asked = notes.asked.as_ref().ok_or(class::TYPE)?;
            let (i, c, d) = (
                asked.integers.len(),
                asked.counts.len(),
                asked.datatypes.len(),
            );
            let has_room = |most: Count, length: usize, is_null: bool| {
                length == 0 || (most >= length as Count && !is_null)
            };
            if !has_room(max_integers, i, integers.is_null())
                || !has_room(max_counts, c, counts.is_null())
                || !has_room(max_datatypes, d, datatypes.is_null())
            {
                return Err(class::ARG);
            }
            if i > 0 {
                integers.copy_from(asked.integers.as_ptr(), i);
            }
            if c > 0 {
                counts.copy_from(asked.counts.as_ptr(), c);
            }
            for (at, part) in asked.datatypes.iter().enumerate() {
                if !(**part).predefined() {
                    handle::retain(*part);
                }
                datatypes.add(at).set(*part);
            }
            Ok(())
        })
    }
}
