// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::ffi::c_void;

use crate::neutral::Word;

/// The functions; filled by the lower half in every launch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Direct {
    /// Which ABI they have (`openmpi::ABI`).
    pub abi: u64,
    /// `MPI_Allgather`.
    pub allgather:
        unsafe extern "C" fn(*const c_void, i32, Word, *mut c_void, i32, Word, Word) -> i32,
    /// `MPI_Bcast`.
    pub bcast: unsafe extern "C" fn(*mut c_void, i32, Word, i32, Word) -> i32,
    /// `MPI_Ireduce`.
    pub ireduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        i32,
        Word,
        Word,
        i32,
        Word,
        *mut Word,
    ) -> i32,
    /// `MPI_Isend`.
    pub isend: unsafe extern "C" fn(*const c_void, i32, Word, i32, i32, Word, *mut Word) -> i32,
    /// `MPI_Waitall`, if the library has it.
    pub waitall: Option<unsafe extern "C" fn(i32, *mut Word, *mut c_void) -> i32>,
}
