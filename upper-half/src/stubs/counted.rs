//! The number of elements of a message. For a predefined datatype it is answered on the spot: its size is known here, and the bytes are in the status.

use core::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, UNDEFINED};
use crate::ground::arch;
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::Datatype;
use crate::objects::errhandler::raise;
use crate::stubs::steps;

/// Bytes of an element of a predefined datatype that has some; before MPI has started, none has.
#[inline(always)]
unsafe fn element(datatype: Datatype) -> Option<u64> {
    if !arch::is_address(datatype) {
        return None;
    }
    // SAFETY: the handle is an address here, and so leads to an object, which is never unmapped.
    let it = unsafe { &*datatype };
    let known = it.is(HandleKind::Datatype) && it.predefined() && it.size > 0;
    known.then_some(it.size as u64)
}

/// `MPI_Get_count`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn get_count(
    status: *const abi::Status,
    datatype: Datatype,
    count: *mut c_int,
) -> c_int {
    // SAFETY: `element` looks at the datatype; status and count are not null when they are used, so MPI demands that they are readable and writable.
    unsafe {
        let Some(element) = element(datatype) else {
            return get_count_below(status, datatype, count);
        };
        if status.is_null() || abi::is_ignored(status) || count.is_null() {
            return get_count_below(status, datatype, count);
        }
        let bytes = (*status).to_neutral().bytes();
        *count = elements(bytes, element);
    }
    0
}

/// The number of elements in that many bytes, or `MPI_UNDEFINED` if that is not a whole number, or too large.
#[inline(always)]
fn elements(bytes: u64, element: u64) -> c_int {
    match (c_int::try_from(bytes / element), bytes % element) {
        (Ok(whole), 0) => whole,
        _ => UNDEFINED,
    }
}

#[cold]
#[inline(never)]
unsafe fn get_count_below(
    status: *const abi::Status,
    datatype: Datatype,
    count: *mut c_int,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: inside a stub; the application's status and place.
    unsafe {
        let neutral = steps::status(status);
        let given = steps::given(status, &raw const neutral);
        let word = abi::word(HandleKind::Datatype, datatype);
        let code = cross_near(|lower| (lower.get_count)(given, word, count));
        if code != 0 {
            return raise(core::ptr::null_mut(), code, c"MPI_Get_count");
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_whole_number_of_elements_or_too_many_is_undefined() {
        assert_eq!((elements(0, 8), elements(24, 8)), (0, 3));
        assert_eq!((elements(25, 8), elements(7, 8)), (UNDEFINED, UNDEFINED));
        let most = i32::MAX as u64;
        assert_eq!(elements(8 * most, 8), i32::MAX);
        assert_eq!(elements(8 * (most + 1), 8), UNDEFINED);
        assert_eq!(elements(u64::MAX, 1), UNDEFINED);
    }
}
