// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::mem::transmute;

use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::openmpi as abi;

use crate::mpi::library::{ffi};

/// The table. Its handles are words: the library's are as large, or their lower half.
#[allow(clippy::missing_transmute_annotations, reason = "the field says what a function becomes")]
pub fn direct() -> Direct {
    // SAFETY: each function takes what `mpi.h` says; words stand for handles, untyped pointers for typed ones.
    unsafe {
        Direct {
            abi: abi::ABI,
            allgather: transmute::<*const (), _>(ffi::MPI_Allgather as *const ()),
            bcast: transmute::<*const (), _>(ffi::MPI_Bcast as *const ()),
            ireduce: transmute::<*const (), _>(ffi::MPI_Ireduce as *const ()),
            isend: transmute::<*const (), _>(ffi::MPI_Isend as *const ()),
            waitall: Some(transmute::<*const (), _>(ffi::MPI_Waitall as *const ())),
        }
    }
}
