//! The removed MPI-1 constructors, which libraries still export: their newer forms under their old names.

use std::ffi::c_int;

use super::constructors::{derive, hindexed, structure};
use super::recipe::{Combiner, Recipe};
use crate::ground::abi::{Aint, DatatypeHandle, ListOf, PlaceOf};
use crate::ground::object::Datatype;

/// `MPI_Type_hvector`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_hvector(
    count: c_int,
    block: c_int,
    stride: Aint,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `derive` looks at the datatype and at the place; the stride is a plain number.
    unsafe {
        derive(of, place, c"MPI_Type_hvector", || {
            Ok(Recipe::new(
                Combiner::Hvector,
                vec![count, block],
                vec![stride],
            ))
        })
    }
}

/// `MPI_Type_hindexed`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_hindexed(
    count: c_int,
    blocks: *const c_int,
    displacements: *const Aint,
    of: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `hindexed` demands what MPI does of this function's arguments, which are the same.
    unsafe {
        hindexed(
            count,
            blocks,
            displacements,
            of,
            place,
            c"MPI_Type_hindexed",
        )
    }
}

/// `MPI_Type_struct`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_struct(
    count: c_int,
    blocks: *const c_int,
    displacements: *const Aint,
    of: ListOf<DatatypeHandle>,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `structure` demands what MPI does of this function's arguments, which are the same.
    unsafe { structure(count, blocks, displacements, of, place, c"MPI_Type_struct") }
}
