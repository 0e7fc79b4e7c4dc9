//! The functions that make and free operators.

use std::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;

use super::create;
use crate::ground::abi::{self, OpHandle, PlaceOf, UserFunction};
use crate::ground::handle;
use crate::objects::errhandler::run;
use crate::objects::outcome::{address, class, give, live};

/// `MPI_Op_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn op_create(
    function: UserFunction,
    commutes: c_int,
    place: PlaceOf<OpHandle>,
) -> c_int {
    // SAFETY: neither the place nor the function is null when it is used; MPI demands a writable place, and a function of this type that stays.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Op_create", || {
            let function = address(function);
            if place.is_null() {
                return Err(class::OP);
            }
            if function == 0 {
                return Err(class::ARG);
            }
            give(place, create(function, commutes != 0)?)
        })
    }
}

/// `MPI_Op_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn op_free(place: PlaceOf<OpHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `live` looks at it; its holder of the operator ends here.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Op_free", || {
            if place.is_null() {
                return Err(class::OP);
            }
            let operator = live(place.get(), HandleKind::Operator)?;
            if (*operator).predefined() {
                return Err(class::OP);
            }
            place.set(abi::predefined(HandleKind::Operator, 32));
            handle::release(operator);
            Ok(())
        })
    }
}
