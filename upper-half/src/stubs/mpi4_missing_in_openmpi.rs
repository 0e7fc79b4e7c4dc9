//! Functions of MPI-4 that Open MPI 4 does not have, and that need little: for ABIs that have them, and for later releases of Open MPI.

use core::ffi::{c_char, c_int};

use stillpoint_wrappers::gate::HandleKind;

use crate::communicators;
use crate::ground::abi::{self, CommHandle, InfoHandle, PlaceOf, RequestHandle};
use crate::ground::handle;
use crate::ground::object::{Comm, Info};
use crate::objects::info;
use stillpoint_wrappers::standard;

/// Gives a new communicator hints, if there are any.
///
/// # Safety
/// Not inside MPI; both must be null or lead to objects.
pub unsafe fn hint(made: Comm, info: Info) {
    // SAFETY: MPI's own functions look at what they are given.
    unsafe {
        if handle::valid(info, HandleKind::Info) && !abi::predefined::is_null_handle(info) {
            communicators::comm_set_info(made, info);
        }
    }
}

/// `MPI_Comm_idup_with_info`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_idup_with_info(
    comm: Comm,
    info: Info,
    place: PlaceOf<CommHandle>,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    // SAFETY: MPI's own functions look at what they are given.
    unsafe {
        let code = communicators::comm_idup(comm, place, request);
        if code == 0 {
            hint(place.get(), info);
        }
        code
    }
}

/// `MPI_Info_create_env`: an info with the contents of `MPI_INFO_ENV`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn info_create_env(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    place: PlaceOf<InfoHandle>,
) -> c_int {
    // SAFETY: `info_dup` looks at the place; `MPI_INFO_ENV` is a predefined object.
    unsafe { info::info_dup(abi::predefined(HandleKind::Info, standard::INFO_ENV), place) }
}
