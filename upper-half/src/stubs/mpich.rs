//! MPICH's own functions whose whole work is an answer.

use core::ffi::c_int;

use crate::ground::export::export;

/// Whether MPICH itself takes a GPU's memory: no, because this library copies such memory instead (docs/users/gpus.md).
macro_rules! no_support {
    ($($exported:literal $also:ident $own:ident;)*) => {$(
        #[unsafe(export_name = $exported)]
        unsafe extern "C" fn $own() -> c_int {
            0
        }
        export!($also => $own);
    )*};
}

no_support! {
    "MPIX_Query_cuda_support" PMPIX_Query_cuda_support query_cuda_support;
    "MPIX_Query_hip_support" PMPIX_Query_hip_support query_hip_support;
    "MPIX_Query_ze_support" PMPIX_Query_ze_support query_ze_support;
}

/// `MPIX_GPU_query_support`.
#[unsafe(export_name = "MPIX_GPU_query_support")]
unsafe extern "C" fn gpu_query_support(_kind: c_int, place: *mut c_int) -> c_int {
    // SAFETY: MPICH demands that the place is writable, and a null one is left out.
    if let Some(place) = unsafe { place.as_mut() } {
        *place = 0;
    }
    0
}
export!(PMPIX_GPU_query_support => gpu_query_support);
