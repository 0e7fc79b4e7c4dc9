//! Addresses that stand for something in Fortran.

use core::cell::UnsafeCell;
use core::ffi::c_void;

use super::Shared;

/// Addresses that stand for something in Fortran: nobody reads or writes there.
macro_rules! special_addresses {
    ($($name:ident: $bytes:literal,)*) => {
        $(#[unsafe(no_mangle)]
        static $name: Shared<[u8; $bytes]> = Shared(UnsafeCell::new([0; $bytes]));)*
    };
}

special_addresses! {
    mpi_fortran_argv_null_: 1,
    mpi_fortran_argvs_null_: 1,
    mpi_fortran_bottom_: 4,
    mpi_fortran_errcodes_ignore_: 4,
    mpi_fortran_in_place_: 4,
    mpi_fortran_status_ignore_: 8,
    mpi_fortran_statuses_ignore_: 8,
    mpi_fortran_unweighted_: 4,
    mpi_fortran_weights_empty_: 4,
}

/// A pointer to one of them, for C.
#[repr(transparent)]
struct Constant(*const c_void);

// SAFETY: the pointer is not changed, and nothing is read or written there.
unsafe impl Sync for Constant {}

#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static MPI_F_STATUS_IGNORE: Constant = Constant((&raw const mpi_fortran_status_ignore_).cast());
#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static MPI_F_STATUSES_IGNORE: Constant = Constant((&raw const mpi_fortran_statuses_ignore_).cast());
