//! The answers of the real MPI about GPUs: asked through `Services::predefined`, under a kind that no handle has. Older lower halves answer 0, as for any such kind.

use core::ffi::CStr;

/// The kind: the service then tells whether the real MPI says that it takes a GPU's memory (1: yes), by the place of its function in [`GPU_QUERIES`].
pub const TAKES_GPUS: u32 = u32::MAX;

/// The functions by which MPI libraries tell this.
pub const GPU_QUERIES: [&CStr; 3] = [
    c"MPIX_Query_cuda_support",
    c"MPIX_Query_hip_support",
    c"MPIX_Query_ze_support",
];
