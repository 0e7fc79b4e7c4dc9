// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

// Functions that the real MPI exports and its `mpi.h` does not declare. Handles are pointers, hence words.

use core::ffi::c_void;

unsafe extern "C" {
    pub fn MPIX_Barrier_init(
        comm: *mut c_void,
        info: *mut c_void,
        request: *mut *mut c_void,
    ) -> i32;
    pub fn MPI_Type_struct(
        count: i32,
        array_of_blocklengths: *const i32,
        array_of_displacements: *const isize,
        array_of_types: *const *mut c_void,
        newtype: *mut *mut c_void,
    ) -> i32;
}
