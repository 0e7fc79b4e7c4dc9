//! `MPI_Type_get_envelope` and `MPI_Type_get_contents`, answered from the recipe.

use std::ffi::c_int;

use super::recipe::{COMBINER_NAMED, Combiner, Recipe, length};
use super::{body, usable};
use crate::ground::abi::{self, Aint, DatatypeHandle, PlaceOf};
use crate::ground::handle;
use crate::ground::object::Datatype;
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, class, give};

/// `MPI_Type_get_envelope`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_get_envelope(
    datatype: Datatype,
    integers: *mut c_int,
    addresses: *mut c_int,
    datatypes: *mut c_int,
    combiner: *mut c_int,
) -> c_int {
    // SAFETY: `usable` looks at the datatype, whose recipe never changes; `give` refuses null places.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_get_envelope", || {
            let datatype = usable(datatype)?;
            refuse_asked(datatype)?;
            let recipe = body(datatype).and_then(|body| body.recipe.as_ref());
            let (i, a, d) = recipe.map_or((0, 0, 0), Recipe::envelope);
            let value = recipe.map_or(COMBINER_NAMED, |recipe| recipe.combiner as i32);
            give(integers, i as c_int)?;
            give(addresses, a as c_int)?;
            give(datatypes, d as c_int)?;
            give(combiner, abi::combiner_from_neutral(value))
        })
    }
}

/// Whether only the twins with large counts tell the contents of a datatype.
///
/// # Safety
/// A live datatype.
unsafe fn refuse_asked(_datatype: Datatype) -> MpiResult {
    #[cfg(not(application = "openmpi"))]
    // SAFETY: the datatype is alive, by the caller's promise.
    if unsafe { super::large_arguments::is_asked(_datatype) } {
        return Err(class::TYPE);
    }
    Ok(())
}

/// The integers with the application's values for orders, distributions and their arguments.
fn integers_from_neutral(recipe: &Recipe) -> Vec<c_int> {
    let mut all = recipe.integers.clone();
    if matches!(recipe.combiner, Combiner::Subarray | Combiner::Darray)
        && let Some(order) = all.last_mut()
    {
        *order = abi::order_from_neutral(*order);
    }
    if recipe.combiner == Combiner::Darray {
        let n = length(recipe.integer(2));
        for kind in all.iter_mut().skip(3 + n).take(n) {
            *kind = abi::distribution_from_neutral(*kind);
        }
        for argument in all.iter_mut().skip(3 + 2 * n).take(n) {
            *argument = abi::darg_from_neutral(*argument);
        }
    }
    all
}

/// `MPI_Type_get_contents`: the datatypes that are given out are the application's to free.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_get_contents(
    datatype: Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut Aint,
    datatypes: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `usable` looks at the datatype; MPI demands arrays as long as their maxima, and what is written is no longer.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_get_contents", || {
            let datatype = usable(datatype)?;
            refuse_asked(datatype)?;
            let body = body(datatype);
            let recipe = body
                .and_then(|body| body.recipe.as_ref())
                .ok_or(class::TYPE)?;
            let (i, a, d) = recipe.envelope();
            if length(max_integers) < i || length(max_addresses) < a || length(max_datatypes) < d {
                return Err(class::ARG);
            }
            if (i > 0 && integers.is_null())
                || (a > 0 && addresses.is_null())
                || (d > 0 && datatypes.is_null())
            {
                return Err(class::ARG);
            }
            integers.copy_from(integers_from_neutral(recipe).as_ptr(), i);
            addresses.copy_from(recipe.addresses.as_ptr(), a);
            for (at, part) in recipe.datatypes.iter().enumerate() {
                if !(**part).predefined() {
                    handle::retain(*part);
                }
                datatypes.add(at).set(*part);
            }
            Ok(())
        })
    }
}
