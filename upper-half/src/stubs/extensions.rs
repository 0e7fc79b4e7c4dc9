//! Answers of functions that Open MPI's and MPICH's libraries have alike besides the standard's.

use core::ffi::{c_int, c_void};

use stillpoint_wrappers::gate::page;
use stillpoint_wrappers::gpu_queries::TAKES_GPUS;

/// Whether MPI takes memory of the GPUs with that place in `GPU_QUERIES`: what the real MPI says. (Such memory is copied here either way:
/// docs/users/gpus.md.)
pub fn takes_gpus(place: i32) -> c_int {
    // SAFETY: a program calls this, so the gate page is mapped and filled. The service works with any FS.
    let says = unsafe {
        let ask = page().services.predefined;
        ask.map_or(0, |ask| ask(TAKES_GPUS, place))
    };
    c_int::from(says == 1)
}

/// Copies an attribute as it is: the copy function of `MPI_DUP_FN` and its like.
///
/// # Safety
/// `copy` and `flag` must be writable.
pub unsafe fn copy_as_it_is(value: *mut c_void, copy: *mut *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: the caller gives both places.
    unsafe {
        *flag = 1;
        *copy = value;
    }
    0
}
