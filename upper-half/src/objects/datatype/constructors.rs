//! The functions that make datatypes.

use std::ffi::{CStr, c_int};

use stillpoint_wrappers::gate::HandleKind;

use super::recipe::{Combiner, Recipe, length};
use super::{create, usable};
use crate::ground::abi::{self, Aint, DatatypeHandle, ListOf, PlaceOf};
use crate::ground::handle;
use crate::ground::object::Datatype;
use crate::objects::attribute;
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, class, give, objects, slice};

/// Makes a datatype of one other.
///
/// # Safety
/// As the MPI function of that name.
pub(super) unsafe fn derive(
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
    name: &'static CStr,
    recipe: impl FnOnce() -> MpiResult<Recipe>,
) -> c_int {
    // SAFETY: `usable` looks at the datatype before it is held, and the place is not null when it is written.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            let of = usable(of)?;
            if place.is_null() {
                return Err(class::TYPE);
            }
            give(place, create(recipe()?.of(&[of]))?)
        })
    }
}

/// The scalars, then the arrays: the integers of a recipe.
///
/// # Safety
/// Each array must be null or have its count's elements.
unsafe fn integers(scalars: &[c_int], arrays: &[(*const c_int, c_int)]) -> MpiResult<Vec<i32>> {
    let mut all = scalars.to_vec();
    for (array, count) in arrays {
        // SAFETY: each array is null or has its count's elements, by the caller's promise; `slice` refuses null.
        all.extend_from_slice(unsafe { slice(*array, *count)? });
    }
    Ok(all)
}

/// `MPI_Type_contiguous`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_contiguous(count: c_int, of: Datatype, place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: `derive` checks `of` and `place`, which MPI demands to be a handle and a writable place.
    unsafe {
        derive(of, place, c"MPI_Type_contiguous", || {
            Ok(Recipe::new(Combiner::Contiguous, vec![count], vec![]))
        })
    }
}

/// `MPI_Type_vector`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_vector(
    count: c_int,
    block: c_int,
    stride: c_int,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: no array is read; `derive` checks the handle and the place that the application gave.
    unsafe {
        derive(of, place, c"MPI_Type_vector", || {
            Ok(Recipe::new(
                Combiner::Vector,
                vec![count, block, stride],
                vec![],
            ))
        })
    }
}

/// `MPI_Type_create_hvector`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_hvector(
    count: c_int,
    block: c_int,
    stride: Aint,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `derive` checks the handle and the place that the application gave; the stride is a plain number.
    unsafe {
        derive(of, place, c"MPI_Type_create_hvector", || {
            Ok(Recipe::new(
                Combiner::Hvector,
                vec![count, block],
                vec![stride],
            ))
        })
    }
}

/// `MPI_Type_indexed`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_indexed(
    count: c_int,
    blocks: *const c_int,
    displacements: *const c_int,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: MPI demands `count` elements in both arrays; they are copied before the call returns.
    unsafe {
        derive(of, place, c"MPI_Type_indexed", || {
            let all = integers(&[count], &[(blocks, count), (displacements, count)])?;
            Ok(Recipe::new(Combiner::Indexed, all, vec![]))
        })
    }
}

/// `MPI_Type_create_hindexed`, and MPI-1's form of it under its own name.
///
/// # Safety
/// As the MPI function.
pub(super) unsafe fn hindexed(
    count: c_int,
    blocks: *const c_int,
    displacements: *const Aint,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
    name: &'static CStr,
) -> c_int {
    // SAFETY: MPI demands `count` elements in both arrays; `slice` refuses null, and the elements are copied.
    unsafe {
        derive(of, place, name, || {
            let all = integers(&[count], &[(blocks, count)])?;
            let at = slice(displacements, count)?.to_vec();
            Ok(Recipe::new(Combiner::Hindexed, all, at))
        })
    }
}

/// `MPI_Type_create_hindexed`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_hindexed(
    count: c_int,
    blocks: *const c_int,
    displacements: *const Aint,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `hindexed` demands what MPI does of this function's arguments, which are passed on as they are.
    unsafe {
        hindexed(
            count,
            blocks,
            displacements,
            of,
            place,
            c"MPI_Type_create_hindexed",
        )
    }
}

/// `MPI_Type_create_indexed_block`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_indexed_block(
    count: c_int,
    block: c_int,
    displacements: *const c_int,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: MPI demands `count` elements in `displacements`; they are copied.
    unsafe {
        derive(of, place, c"MPI_Type_create_indexed_block", || {
            let all = integers(&[count, block], &[(displacements, count)])?;
            Ok(Recipe::new(Combiner::IndexedBlock, all, vec![]))
        })
    }
}

/// `MPI_Type_create_hindexed_block`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_hindexed_block(
    count: c_int,
    block: c_int,
    displacements: *const Aint,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: MPI demands `count` elements in `displacements`; `slice` refuses null, and the elements are copied.
    unsafe {
        derive(of, place, c"MPI_Type_create_hindexed_block", || {
            let at = slice(displacements, count)?.to_vec();
            Ok(Recipe::new(Combiner::HindexedBlock, vec![count, block], at))
        })
    }
}

/// `MPI_Type_create_struct`, and MPI-1's form of it under its own name.
///
/// # Safety
/// As the MPI function.
pub(super) unsafe fn structure(
    count: c_int,
    blocks: *const c_int,
    displacements: *const Aint,
    of: ListOf<DatatypeHandle>,
    place: PlaceOf<DatatypeHandle>,
    name: &'static CStr,
) -> c_int {
    // SAFETY: MPI demands `count` elements in all three arrays; each datatype is checked by `usable` before it is used.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            let all = integers(&[count], &[(blocks, count)])?;
            let at = slice(displacements, count)?.to_vec();
            let of = objects(of, count)?;
            for part in &of {
                usable(*part)?;
            }
            if place.is_null() {
                return Err(class::TYPE);
            }
            give(
                place,
                create(Recipe::new(Combiner::Struct, all, at).of(&of))?,
            )
        })
    }
}

/// `MPI_Type_create_struct`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_struct(
    count: c_int,
    blocks: *const c_int,
    displacements: *const Aint,
    of: ListOf<DatatypeHandle>,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `structure` demands what MPI does of this function's arguments, which are passed on as they are.
    unsafe {
        structure(
            count,
            blocks,
            displacements,
            of,
            place,
            c"MPI_Type_create_struct",
        )
    }
}

/// `MPI_Type_create_subarray`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_subarray(
    dims: c_int,
    sizes: *const c_int,
    subsizes: *const c_int,
    starts: *const c_int,
    order: c_int,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: MPI demands `dims` elements in each of the three arrays; they are copied.
    unsafe {
        derive(of, place, c"MPI_Type_create_subarray", || {
            let arrays = [(sizes, dims), (subsizes, dims), (starts, dims)];
            let mut all = integers(&[dims], &arrays)?;
            all.push(abi::order_to_neutral(order));
            Ok(Recipe::new(Combiner::Subarray, all, vec![]))
        })
    }
}

/// `MPI_Type_create_darray`.
///
/// # Safety
/// As the MPI function.
#[expect(clippy::too_many_arguments, reason = "the MPI function has as many")]
pub unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    dims: c_int,
    sizes: *const c_int,
    distributions: *const c_int,
    arguments: *const c_int,
    grid: *const c_int,
    order: c_int,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: MPI demands `dims` elements in each of the four arrays; they are copied, and only the copies change.
    unsafe {
        derive(of, place, c"MPI_Type_create_darray", || {
            let arrays = [
                (sizes, dims),
                (distributions, dims),
                (arguments, dims),
                (grid, dims),
            ];
            let mut all = integers(&[size, rank, dims], &arrays)?;
            let n = length(dims);
            for kind in all.iter_mut().skip(3 + n).take(n) {
                *kind = abi::distribution_to_neutral(*kind);
            }
            for argument in all.iter_mut().skip(3 + 2 * n).take(n) {
                *argument = abi::darg_to_neutral(*argument);
            }
            all.push(abi::order_to_neutral(order));
            Ok(Recipe::new(Combiner::Darray, all, vec![]))
        })
    }
}

/// `MPI_Type_create_resized`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_create_resized(
    of: Datatype,
    lb: Aint,
    extent: Aint,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `lb` and `extent` are plain numbers; `derive` checks the handle and the place.
    unsafe {
        derive(of, place, c"MPI_Type_create_resized", || {
            Ok(Recipe::new(Combiner::Resized, vec![], vec![lb, extent]))
        })
    }
}

/// A datatype like another one, committed if that is; without its attributes.
///
/// # Safety
/// Inside a stub; `of` must be a live datatype.
pub unsafe fn copy_of(of: Datatype) -> MpiResult<Datatype> {
    // SAFETY: `of` is a live datatype by the caller's promise, and `create` has returned a live one; its notes are read and written under their lock.
    unsafe {
        let new = create(Recipe::new(Combiner::Dup, vec![], vec![]).of(&[of]))?;
        let committed =
            (*of).predefined() || super::body(of).is_some_and(|body| body.notes.lock().committed);
        if let Some(body) = super::body(new) {
            body.notes.lock().committed = committed;
        }
        Ok(new)
    }
}

/// `MPI_Type_dup`: the copy is committed if the original is, and has the attributes that their copy functions
/// give it.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_dup(of: Datatype, place: PlaceOf<DatatypeHandle>) -> c_int {
    // SAFETY: `usable` looks at the datatype; the copy is known to this call only until it is given out, and the place is not null.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Type_dup", || {
            let of = usable(of)?;
            if place.is_null() {
                return Err(class::TYPE);
            }
            let new = copy_of(of)?;
            if let Err(error) = attribute::copy_all(of, new) {
                handle::release(new);
                place.set(abi::predefined(HandleKind::Datatype, 512));
                return Err(abi::error_to_neutral(error));
            }
            give(place, new)
        })
    }
}
