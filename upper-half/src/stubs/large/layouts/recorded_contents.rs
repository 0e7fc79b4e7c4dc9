//! The contents that such a datatype reports: the application's own arguments.

use core::ffi::c_int;

use crate::ground::abi::{Count, DatatypeHandle, Handle};
use crate::ground::crossing;
use crate::objects::datatype::large_arguments::{ConstructorArguments, ask};
use crate::objects::datatype::recipe::Combiner;

/// Notes the arguments: numbers, then the elements of lists, each with its length.
///
/// # Safety
/// In a stub, not inside; a datatype was just made there, of those; lists must have that many elements.
pub unsafe fn tell(
    made: *const DatatypeHandle,
    combiner: Combiner,
    integers: &[c_int],
    numbers: &[Count],
    lists: &[(*const Count, Count)],
    of: &[DatatypeHandle],
) {
    let _inside = crossing::enter();
    let mut counts = numbers.to_vec();
    for (list, length) in lists {
        let length = usize::try_from(*length).unwrap_or(0);
        // SAFETY: every index is below `length`, and the list has so many elements, by the caller's promise.
        counts.extend((0..length).map(|at| unsafe { list.add(at).read() }));
    }
    // SAFETY: the new datatype was made of these just now, by the caller's promise, so all are alive and no other thread knows the new one.
    unsafe {
        let asked = ConstructorArguments {
            combiner,
            integers: integers.to_vec(),
            counts,
            datatypes: of.iter().map(|it| Handle::object(*it)).collect(),
        };
        ask(Handle::object(made.read()), asked);
    }
}
