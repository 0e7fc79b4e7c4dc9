//! The end that `MPI_ERRORS_ARE_FATAL` makes of a job, in the real MPI's words.

use core::ffi::c_char;

use mpi_sys as ffi;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;
use stillpoint_wrappers::openmpi;

// Open MPI's own `MPI_ERRORS_ARE_FATAL`: a null object means that MPI is not running.
unsafe extern "C" {
    fn ompi_mpi_errors_are_fatal_comm_handler(object: *mut Word, error: *mut i32, ...);
    fn ompi_mpi_errors_are_fatal_file_handler(object: *mut Word, error: *mut i32, ...);
    fn ompi_mpi_errors_are_fatal_win_handler(object: *mut Word, error: *mut i32, ...);
}

/// `Extra::fatal`.
pub unsafe extern "C" fn fatal(kind: u32, mut object: Word, error: i32, function: *const c_char) {
    let mut code = openmpi::error_from_neutral(error);
    let null = core::ptr::null_mut();
    // SAFETY: the name of a function, and an object of that kind; handlers as `mpi.h` declares them.
    unsafe {
        if kind == HandleKind::Window as u32 {
            ompi_mpi_errors_are_fatal_win_handler(&mut object, &mut code, function);
        } else if kind == HandleKind::File as u32 {
            ompi_mpi_errors_are_fatal_file_handler(&mut object, &mut code, function);
        } else if kind == HandleKind::Communicator as u32 {
            ompi_mpi_errors_are_fatal_comm_handler(&mut object, &mut code, function);
        } else {
            ompi_mpi_errors_are_fatal_comm_handler(null, null.cast(), function);
        }
        ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code);
    }
}
