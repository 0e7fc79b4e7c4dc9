//! The real MPI (Open MPI, through rsmpi's bindings) behind the dispatch table.
//!
//! Everything here runs with the lower half's thread pointer, except [`predefined::predefined`], which runs with any.

use std::ffi::c_char;
use std::sync::OnceLock;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::extra::Extra;

use crate::arch::syscall;
use crate::capture::scheduling;
use crate::ground::children;

/// `MPI_ERR_INTERN` of the standard ABI.
const ERR_INTERN: i32 = 17;

mod another;
mod attributes;
pub mod callbacks;
mod convert;
mod fatal;
mod generated;
pub mod interruptible;
mod packed;
pub mod predefined;
pub mod progress;

static TABLE: OnceLock<Dispatch> = OnceLock::new();

/// Makes the table for the gate page; `extra` is what is not MPI's own, and `before` is run when the program starts MPI.
pub fn prepare(extra: Extra, before: fn()) -> &'static Dispatch {
    TABLE.get_or_init(|| {
        let mut table = generated::dispatch(extra);
        START.get_or_init(|| (table.init_thread, before));
        table.init_thread = start;
        table
    })
}

/// The table, once it is made.
pub fn table() -> Option<&'static Dispatch> {
    TABLE.get()
}

type Start = unsafe extern "C" fn(*mut i32, *mut *mut *mut c_char, i32, *mut i32) -> i32;
/// The real MPI's function, and what is run before it.
static START: OnceLock<(Start, fn())> = OnceLock::new();

/// `MPI_Init_thread`. The threads that MPI starts
/// inherit this thread's mask: they must not get signals that are meant for the application.
///
/// # Safety
/// As `MPI_Init_thread`.
unsafe extern "C" fn start(
    argc: *mut i32,
    argv: *mut *mut *mut c_char,
    required: i32,
    provided: *mut i32,
) -> i32 {
    let Some((start, before)) = START.get() else {
        return ERR_INTERN;
    };
    let mask = syscall::set_mask(u64::MAX);
    another::refuse();
    before();
    let code = children::while_mpi_starts(|| {
        // SAFETY: passed on to the caller.
        scheduling::while_mpi_binds(|| unsafe { start(argc, argv, required, provided) })
    });
    syscall::set_mask(mask);
    code
}

#[cfg(test)]
mod tests {
    use mpi_sys as ffi;
    use stillpoint_wrappers::openmpi;

    #[test]
    fn the_tables_values_are_those_of_the_installed_header() {
        assert_eq!(openmpi::rank_from_neutral(-3), ffi::MPI_PROC_NULL);
        assert_eq!(openmpi::rank_from_neutral(-1), ffi::MPI_ANY_SOURCE);
        assert_eq!(openmpi::rank_from_neutral(-4), ffi::MPI_ROOT);
        assert_eq!(openmpi::tag_from_neutral(-2), ffi::MPI_ANY_TAG);
        assert_eq!(openmpi::ERR_LASTCODE as u32, ffi::MPI_ERR_LASTCODE);
        assert_eq!(openmpi::error_from_neutral(18) as u32, ffi::MPI_ERR_PENDING);
        assert_eq!(openmpi::error_from_neutral(56) as u32, ffi::MPI_ERR_WIN);
        assert_eq!(
            openmpi::error_from_neutral(1011) as u32,
            ffi::MPI_T_ERR_INVALID_NAME
        );
        assert_eq!(
            openmpi::mode_from_neutral(1 | 256) as u32,
            ffi::MPI_MODE_APPEND | ffi::MPI_MODE_WRONLY
        );
        assert_eq!(
            openmpi::assertion_from_neutral(4096) as u32,
            ffi::MPI_MODE_NOPUT
        );
        assert_eq!(
            openmpi::threads_from_neutral(4096) as u32,
            ffi::MPI_THREAD_MULTIPLE
        );
        assert_eq!(
            openmpi::order_from_neutral(15) as u32,
            ffi::MPI_ORDER_FORTRAN
        );
        assert_eq!(
            openmpi::distribution_from_neutral(18) as u32,
            ffi::MPI_DISTRIBUTE_CYCLIC
        );
        assert_eq!(
            openmpi::combiner_from_neutral(109) as u32,
            ffi::MPI_COMBINER_HINDEXED_BLOCK
        );
        assert_eq!(
            openmpi::combiner_from_neutral(116) as u32,
            ffi::MPI_COMBINER_RESIZED
        );
        assert_eq!(
            openmpi::typeclass_from_neutral(194) as u32,
            ffi::MPI_TYPECLASS_COMPLEX
        );
        assert_eq!(
            openmpi::comparison_from_neutral(204) as u32,
            ffi::MPI_UNEQUAL
        );
        assert_eq!(
            openmpi::topology_from_neutral(213) as u32,
            ffi::MPI_DIST_GRAPH
        );
        assert_eq!(
            openmpi::split_from_neutral(1231) as u32,
            ffi::OMPI_COMM_TYPE_CLUSTER
        );
        assert_eq!(openmpi::lock_from_neutral(302) as u32, ffi::MPI_LOCK_SHARED);
        assert_eq!(
            openmpi::flavor_from_neutral(314) as u32,
            ffi::MPI_WIN_FLAVOR_SHARED
        );
        assert_eq!(
            openmpi::model_from_neutral(322) as u32,
            ffi::MPI_WIN_SEPARATE
        );
        assert_eq!(openmpi::whence_from_neutral(402) as u32, ffi::MPI_SEEK_END);
        assert_eq!(
            openmpi::displacement_from_neutral(-1),
            i64::from(ffi::MPI_DISPLACEMENT_CURRENT)
        );
        assert_eq!(openmpi::keyval_from_neutral(605) as u32, ffi::MPI_WIN_MODEL);
        assert_eq!(openmpi::keyval_from_neutral(501) as u32, ffi::MPI_TAG_UB);
    }

    #[test]
    fn a_status_is_laid_out_as_in_the_installed_header() {
        assert_eq!(size_of::<openmpi::Status>(), size_of::<ffi::MPI_Status>());
        let status = openmpi::Status {
            source: 1,
            tag: 2,
            error: 3,
            cancelled: 4,
            bytes: 5,
        };
        // SAFETY: both are plain numbers, of the same size.
        let theirs: ffi::MPI_Status = unsafe { std::mem::transmute(status) };
        assert_eq!(
            (theirs.MPI_SOURCE, theirs.MPI_TAG, theirs.MPI_ERROR),
            (1, 2, 3)
        );
        assert_eq!((theirs._cancelled, theirs._ucount), (4, 5));
    }
}
