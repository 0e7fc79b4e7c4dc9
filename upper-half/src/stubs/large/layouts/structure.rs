//! Structures.

use core::ffi::{CStr, c_int};

use super::bounds::Run;
use super::{Block, Made, bounds_of, end, list, of_blocks, recorded_contents};
use crate::ground::abi::{Aint, Count, DatatypeHandle, PlaceOf};
use crate::objects::datatype::recipe::Combiner;
use crate::stubs::large::int;

/// `MPI_Type_create_struct_c`, with a number that an int does not hold.
///
/// # Safety
/// As the MPI function; in a stub, not inside yet.
#[cold]
pub unsafe fn type_create_struct(
    count: Count,
    array_of_blocklengths: *const Count,
    array_of_displacements: *const Aint,
    array_of_types: *const DatatypeHandle,
    newtype: *mut DatatypeHandle,
) -> c_int {
    const NAME: &CStr = c"MPI_Type_create_struct_c";
    // SAFETY: MPI demands `count` elements in all three arrays and a writable place; `bounds_of` has the real MPI check each datatype.
    unsafe {
        let make = || -> Made {
            let lengths = list(array_of_blocklengths, count)?;
            let places = list(array_of_displacements, count)?;
            let types = list(array_of_types, count)?;
            let mut blocks = Vec::with_capacity(types.len());
            for ((count, at), of) in lengths.into_iter().zip(places).zip(types) {
                let bounds = bounds_of(of, NAME).map_err(Some)?;
                let at = at as i64;
                let run = Run { at, count, bounds };
                blocks.push(Block { run, of });
            }
            of_blocks(blocks, PlaceOf::at(newtype))
        };
        let code = end(make(), NAME);
        if let (0, Some(parts)) = (code, int(count)) {
            let places = array_of_displacements.cast::<Count>();
            let lists = [(array_of_blocklengths, count), (places, count)];
            let of = core::slice::from_raw_parts(array_of_types, parts as usize);
            recorded_contents::tell(newtype, Combiner::Struct, &[], &[count], &lists, of);
        }
        code
    }
}
