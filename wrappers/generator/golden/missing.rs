// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

// Functions that the real MPI exports and its `mpi.h` does not declare. Not every version has them, or has them under these names: they are
// looked up when they are called. Handles are pointers, hence words.

use core::ffi::c_void;
use core::mem::transmute;

use crate::mpi::library::named::Named;

/// `MPIX_Barrier_init`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn MPIX_Barrier_init(
    comm: *mut c_void,
    info: *mut c_void,
    request: *mut *mut c_void,
) -> i32 {
    static NAMED: Named = Named::new(c"MPIX_Barrier_init");
    let Some(function) = NAMED.found() else {
        return NAMED.absent();
    };
    // SAFETY: what has this name is such a function, and the arguments are the caller's.
    unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            *mut *mut c_void,
        ) -> i32>(function)(comm, info, request)
    }
}

/// `MPI_Type_struct`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn MPI_Type_struct(
    count: i32,
    array_of_blocklengths: *const i32,
    array_of_displacements: *const isize,
    array_of_types: *const *mut c_void,
    newtype: *mut *mut c_void,
) -> i32 {
    static NAMED: Named = Named::new(c"MPI_Type_struct");
    let Some(function) = NAMED.found() else {
        return NAMED.absent();
    };
    // SAFETY: what has this name is such a function, and the arguments are the caller's.
    unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(i32, *const i32, *const isize, *const *mut c_void, *mut *mut c_void) -> i32>(function)(
            count,
            array_of_blocklengths,
            array_of_displacements,
            array_of_types,
            newtype,
        )
    }
}
