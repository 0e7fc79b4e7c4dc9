//! The real MPI behind the dispatch table. `library` finds out which library it is; `backend` has its own ways.
//!
//! Everything here runs with the lower half's thread pointer, except [`predefined::predefined`], which runs with any.

use std::ffi::c_char;
use std::sync::OnceLock;

use stillpoint_protocol::launch::Launch;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::extra::Extra;

use crate::arch::syscall;
use crate::capture::scheduling;
use crate::ground::children;

/// `MPI_ERR_INTERN` of the standard ABI.
const ERR_INTERN: i32 = 17;

mod attributes;
pub mod backend;
pub mod callbacks;
mod convert;
mod fatal;
mod foreign_mpi;
mod generated;
mod gpu_support;
pub mod interruptible;
pub mod library;
pub mod open_files;
pub mod open_windows;
mod packed;
pub mod predefined;
pub mod progress;
pub mod ucx;

static TABLE: OnceLock<Dispatch> = OnceLock::new();

/// Loads the library that a launch names, before anything asks for a function of it.
///
/// # Safety
/// No other thread may run yet.
pub unsafe fn load(launch: &Launch) -> Result<(), String> {
    foreign_mpi::programs_are_for(&launch.mpi);
    library::load(launch.library_file.as_deref(), &launch.mpi)?;
    if let Some(loaded) = backend::BACKEND.loaded {
        // SAFETY: the caller says that no other thread runs yet, which is what `Backend::loaded` demands.
        unsafe { loaded() };
    }
    if cfg!(library = "openmpi") {
        // Open MPI may be asked before it is started.
        gpu_support::ask();
    }
    Ok(())
}

/// Makes the table for the gate page. `extra` has the functions that are not MPI's own; `before` is called when the program starts MPI.
pub fn prepare(extra: Extra, before: fn()) -> &'static Dispatch {
    TABLE.get_or_init(|| {
        let mut table = generated::dispatch(extra);
        library::adapt(&mut table);
        open_files::watch(&mut table);
        open_windows::watch(&mut table);
        START.get_or_init(|| (table.init_thread, before));
        table.init_thread = start;
        table
    })
}

/// Returns the table, once it is made.
pub fn table() -> Option<&'static Dispatch> {
    TABLE.get()
}

type Start = unsafe extern "C" fn(*mut i32, *mut *mut *mut c_char, i32, *mut i32) -> i32;
/// The real MPI's function, and the one that is called before it.
static START: OnceLock<(Start, fn())> = OnceLock::new();

/// Calls `MPI_Init_thread`. The threads that MPI starts inherit this thread's mask: they must not get signals that are meant for the
/// application.
///
/// # Safety
/// Those of `MPI_Init_thread`.
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
    foreign_mpi::refuse();
    before();
    let code = children::while_mpi_starts(|| {
        // SAFETY: the caller gives what `MPI_Init_thread` takes, and passes it on to the library's own function.
        scheduling::while_mpi_binds(|| unsafe { start(argc, argv, required, provided) })
    });
    if code == 0 {
        gpu_support::ask();
        packed::prepare();
        progress::prepare();
    }
    syscall::set_mask(mask);
    code
}

#[cfg(all(test, library = "openmpi"))]
mod tests {
    include!(concat!(env!("OUT_DIR"), "/header.rs"));

    #[test]
    fn the_description_says_what_the_installed_header_says() {
        for (name, told, installed) in NUMBERS {
            assert_eq!(told, installed, "{name}");
        }
        for (name, told, installed) in SIZES {
            assert_eq!(told, installed, "{name}");
        }
    }

    #[test]
    fn a_status_is_laid_out_as_in_the_installed_header() {
        assert_eq!(size_of::<abi::Status>(), size_of::<ffi::MPI_Status>());
        let status = abi::Status {
            source: 1,
            tag: 2,
            error: 3,
            cancelled: 4,
            bytes: 5,
        };
        // SAFETY: both structures consist of integers and have the same size, as was just compared.
        let theirs: ffi::MPI_Status = unsafe { std::mem::transmute(status) };
        assert_eq!(
            (theirs.MPI_SOURCE, theirs.MPI_TAG, theirs.MPI_ERROR),
            (1, 2, 3)
        );
        assert_eq!((theirs._cancelled, theirs._ucount), (4, 5));
    }
}
