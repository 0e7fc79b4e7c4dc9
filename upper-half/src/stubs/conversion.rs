//! Handles and statuses between C and Fortran (MPI 5.0, section 19.3).
//!
//! A handle's number is a constant of `mpif.h` or comes from `fortran`'s tables. As in Open MPI, a value that is not a handle
//! has the number -1, and an invalid number gives a null pointer.

use core::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, Fint, Status};
use crate::ground::object::Object;
use crate::ground::{crossing, fortran, handle};
use crate::objects::errhandler;
use crate::objects::outcome::class;

/// A status in Fortran is as many integers as it has in C (`MPI_F_STATUS_SIZE`).
const STATUS_INTEGERS: usize = size_of::<Status>() / size_of::<Fint>();

/// Gives the predefined handles their numbers. Run when the library is loaded.
///
/// # Safety
/// The predefined objects must be filled; no other thread may be there.
pub unsafe fn initialise() {
    for (entry, object) in abi::predefined_handles() {
        // SAFETY: the predefined objects are filled, and no other thread is there, by the caller's promise.
        unsafe { fortran::predefine(object, entry.number()) };
    }
}

/// # Safety
/// `object` must be null or a handle, alive or freed.
unsafe fn to_number(kind: HandleKind, object: *mut Object) -> Fint {
    let _inside = crossing::enter();
    // SAFETY: `valid` looks at the handle, which may be a freed one's, since objects stay mapped.
    unsafe {
        if handle::valid(object, kind) {
            fortran::to_fortran(object)
        } else {
            -1
        }
    }
}

fn to_object(kind: HandleKind, number: Fint) -> *mut Object {
    let _inside = crossing::enter();
    fortran::from_fortran(kind, number)
}

macro_rules! conversions {
    ($($kind:ident: $to:ident $to_name:literal, $from:ident $from_name:literal;)*) => {$(
        #[doc = concat!("`", $to_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $to(object: *mut Object) -> Fint {
            // SAFETY: MPI demands a handle, and `to_number` looks at it.
            unsafe { to_number(HandleKind::$kind, object) }
        }

        #[doc = concat!("`", $from_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $from(number: Fint) -> *mut Object {
            to_object(HandleKind::$kind, number)
        }
    )*};
}

#[cfg(not(application = "openmpi"))]
conversions! {
    Session: session_toint "MPI_Session_toint", session_fromint "MPI_Session_fromint";
}

conversions! {
    Communicator: comm_c2f "MPI_Comm_c2f", comm_f2c "MPI_Comm_f2c";
    Group: group_c2f "MPI_Group_c2f", group_f2c "MPI_Group_f2c";
    Datatype: type_c2f "MPI_Type_c2f", type_f2c "MPI_Type_f2c";
    Operator: op_c2f "MPI_Op_c2f", op_f2c "MPI_Op_f2c";
    Request: request_c2f "MPI_Request_c2f", request_f2c "MPI_Request_f2c";
    Errhandler: errhandler_c2f "MPI_Errhandler_c2f", errhandler_f2c "MPI_Errhandler_f2c";
    Info: info_c2f "MPI_Info_c2f", info_f2c "MPI_Info_f2c";
    Message: message_c2f "MPI_Message_c2f", message_f2c "MPI_Message_f2c";
    Window: win_c2f "MPI_Win_c2f", win_f2c "MPI_Win_f2c";
    File: file_c2f "MPI_File_c2f", file_f2c "MPI_File_f2c";
}

/// `MPI_Status_c2f`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn status_c2f(c_status: *const Status, f_status: *mut Fint) -> c_int {
    // SAFETY: MPI demands two statuses, of C's and Fortran's form, which have the same size; null ones are refused.
    unsafe { copy_status(c_status.cast(), f_status, c"MPI_Status_c2f") }
}

/// `MPI_Status_f2c`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn status_f2c(f_status: *const Fint, c_status: *mut Status) -> c_int {
    // SAFETY: MPI demands two statuses, of Fortran's and C's form, which have the same size; null ones are refused.
    unsafe { copy_status(f_status, c_status.cast(), c"MPI_Status_f2c") }
}

/// # Safety
/// Both must be null or statuses.
unsafe fn copy_status(from: *const Fint, to: *mut Fint, name: &'static core::ffi::CStr) -> c_int {
    // SAFETY: neither is null here, so both are statuses, by the caller's promise; `copy` allows that they are the same one.
    unsafe {
        if from.is_null() || to.is_null() {
            let _inside = crossing::enter();
            return errhandler::raise(core::ptr::null_mut(), class::IN_STATUS, name);
        }
        core::ptr::copy(from, to, STATUS_INTEGERS);
    }
    0
}
