//! MPICH's own functions whose whole work is an answer, and its data for Fortran's layers and tools.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

use crate::ground::export::export;
use crate::stubs::extensions::{copy_as_it_is, takes_gpus};

/// Whether MPICH itself takes a GPU's memory.
macro_rules! support {
    ($($exported:literal $also:ident $own:ident $place:literal;)*) => {$(
        #[unsafe(export_name = $exported)]
        unsafe extern "C" fn $own() -> c_int {
            takes_gpus($place)
        }
        export!($also => $own);
    )*};
}

support! {
    "MPIX_Query_cuda_support" PMPIX_Query_cuda_support query_cuda_support 0;
    "MPIX_Query_hip_support" PMPIX_Query_hip_support query_hip_support 1;
    "MPIX_Query_ze_support" PMPIX_Query_ze_support query_ze_support 2;
}

/// `MPIX_GPU_query_support`, whose kinds are CUDA's, Level Zero's and HIP's.
#[unsafe(export_name = "MPIX_GPU_query_support")]
unsafe extern "C" fn gpu_query_support(kind: c_int, place: *mut c_int) -> c_int {
    let says = match kind {
        0 => takes_gpus(0),
        1 => takes_gpus(2),
        2 => takes_gpus(1),
        _ => 0,
    };
    // SAFETY: MPICH demands that the place is writable, and a null one is left out.
    if let Some(place) = unsafe { place.as_mut() } {
        *place = says;
    }
    0
}
export!(PMPIX_GPU_query_support => gpu_query_support);

/// Data under the library's own name.
#[repr(transparent)]
struct Shared<T>(UnsafeCell<T>);

// SAFETY: this library does not touch the value; those that do, order their accesses as with the library's own.
unsafe impl<T> Sync for Shared<T> {}

macro_rules! data {
    ($($name:ident: $kind:ty = $value:expr;)*) => {$(
        #[allow(non_upper_case_globals)] // The library's name.
        #[unsafe(no_mangle)]
        static $name: Shared<$kind> = Shared(UnsafeCell::new($value));
    )*};
}

data! {
    // Statuses that stand for none in `mpi_f08`, and variables that stand for special addresses: known by their addresses.
    MPIR_F08_MPI_STATUS_IGNORE_OBJ: [c_int; 5] = [0; 5];
    MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [c_int; 5] = [0; 5];
    MPIR_F08_MPI_BOTTOM: c_int = 0;
    MPIR_F08_MPI_IN_PLACE: c_int = 0;
    MPI_F08_STATUS_IGNORE: *const c_int = (&raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ).cast();
    MPI_F08_STATUSES_IGNORE: *const c_int = (&raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ).cast();
    // The layer for Fortran writes its own addresses here when it starts.
    MPI_F_STATUS_IGNORE: *const c_int = core::ptr::null();
    MPI_F_STATUSES_IGNORE: *const c_int = core::ptr::null();
    // An address that is no handle's.
    MPI_T_PVAR_ALL_HANDLES: *const c_int = (&raw const MPIR_F08_MPI_BOTTOM).cast();
}

/// `MPI_DUP_FN` of its `mpi.h`: copies an attribute as it is.
///
/// # Safety
/// As MPICH's function.
#[allow(non_snake_case)] // The library's name.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
    _keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    copy: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe { copy_as_it_is(value, copy, flag) }
}
