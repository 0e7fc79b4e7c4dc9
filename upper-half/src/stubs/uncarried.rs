//! Windows, files and spawned processes, where passing through takes more than the generator knows.
//!
//! None of them is carried into an image (see `ground::hindrances`); as long as they live they are the lower half's.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{
    self, Comm, DatarepConversionFunction, DatarepExtentFunction, File, Info, Win,
};
use crate::ground::crossing::{self, Place, cross};
use crate::ground::handle;
use crate::ground::hindrances::{Reason, gone};
use crate::objects::outcome::class;
use crate::objects::{attribute, errhandler};
use crate::stubs::steps;

/// `MPI_Win_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_free(place: *mut Win) -> c_int {
    const NAME: &CStr = c"MPI_Win_free";
    let _inside = crossing::enter_as(Place::Collective);
    // SAFETY: inside a stub; the handle is looked at before it is used.
    unsafe {
        let Some(window) = live(place, HandleKind::Window) else {
            return errhandler::raise(ptr::null_mut(), class::WIN, NAME);
        };
        if let Err(error) = attribute::delete_all(window) {
            return errhandler::raise_own(window, error, NAME);
        }
        let mut word = (*window).lower;
        let code = steps::clocked(window, |lower| (lower.win_free)(&mut word));
        if code != 0 {
            return errhandler::raise(window, code, NAME);
        }
        end(place, HandleKind::Window);
        gone(Reason::Window);
        0
    }
}

/// `MPI_File_close`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_close(place: *mut File) -> c_int {
    const NAME: &CStr = c"MPI_File_close";
    let _inside = crossing::enter_as(Place::Collective);
    // SAFETY: as `win_free`.
    unsafe {
        let Some(file) = live(place, HandleKind::File) else {
            return errhandler::raise(steps::null_file(), class::FILE, NAME);
        };
        let mut word = (*file).lower;
        let code = steps::clocked(file, |lower| (lower.file_close)(&mut word));
        if code != 0 {
            return errhandler::raise(file, code, NAME);
        }
        end(place, HandleKind::File);
        gone(Reason::File);
        0
    }
}

/// The live object that a place leads to.
///
/// # Safety
/// `place` must be null or hold a handle.
unsafe fn live(place: *mut Win, kind: HandleKind) -> Option<*mut crate::ground::object::Object> {
    // SAFETY: the caller's place.
    unsafe {
        let object = if place.is_null() {
            ptr::null_mut()
        } else {
            *place
        };
        let usable = handle::valid(object, kind) && !abi::predefined::is_null_handle(object);
        usable.then_some(object)
    }
}

/// Ends an object that the lower half has freed, and gives the application the null handle.
///
/// # Safety
/// Inside a stub; `place` must hold a live handle.
unsafe fn end(place: *mut Win, kind: HandleKind) {
    // SAFETY: the caller's handle.
    unsafe {
        let object = core::mem::replace(&mut *place, abi::predefined::null_handle(kind));
        // What still holds the object must not reach the lower half by it.
        (*object).lower = abi::predefined::null_word(kind);
        handle::release(object);
    }
}

/// `MPI_Register_datarep`. Open MPI notes the functions and calls none: its files refuse every representation but
/// the predefined ones. So the application's own addresses may go down.
///
/// # Safety
/// As the MPI function.
pub unsafe fn register_datarep(
    datarep: *const c_char,
    read: DatarepConversionFunction,
    write: DatarepConversionFunction,
    extent: DatarepExtentFunction,
    extra_state: *mut c_void,
) -> c_int {
    let _inside = crossing::enter();
    let address = |function: Option<usize>| ptr::without_provenance(function.unwrap_or(0));
    let read = address(read.map(|function| function as usize));
    let write = address(write.map(|function| function as usize));
    let extent = address(extent.map(|function| function as usize));
    // SAFETY: inside a stub; the functions are not called below.
    unsafe {
        let code =
            cross(|lower| (lower.register_datarep)(datarep, read, write, extent, extra_state));
        if code == 0 {
            return 0;
        }
        errhandler::raise(steps::null_file(), code, c"MPI_Register_datarep")
    }
}

/// Whether this process is the root of an operation on an intracommunicator.
///
/// # Safety
/// `comm` must be null or a handle.
unsafe fn is_root(comm: Comm, root: c_int) -> bool {
    // SAFETY: the caller's handle.
    unsafe { handle::valid(comm, HandleKind::Communicator) && (*comm).rank == root }
}

/// `MPI_Comm_spawn`. What is passed is looked at on the root only.
///
/// # Safety
/// As the MPI function.
#[allow(clippy::too_many_arguments)] // MPI's.
pub unsafe fn comm_spawn(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: Info,
    root: c_int,
    comm: Comm,
    intercomm: *mut Comm,
    array_of_errcodes: *mut c_int,
) -> c_int {
    let _inside = crossing::enter_as(Place::Collective);
    // SAFETY: inside a stub; handles as MPI asks for them.
    unsafe {
        let info = if is_root(comm, root) {
            info
        } else {
            ptr::null_mut()
        };
        let mut word = 0;
        let code = steps::clocked(comm, |lower| {
            (lower.comm_spawn)(
                command,
                argv,
                maxprocs,
                abi::word(HandleKind::Info, info),
                abi::rank_to_neutral(root),
                abi::word(HandleKind::Communicator, comm),
                steps::place(intercomm, &mut word),
                array_of_errcodes,
            )
        });
        spawned(comm, code, intercomm, word, c"MPI_Comm_spawn")
    }
}

/// `MPI_Comm_spawn_multiple`. The arrays are looked at on the root only.
///
/// # Safety
/// As the MPI function.
#[allow(clippy::too_many_arguments)] // MPI's.
pub unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const Info,
    root: c_int,
    comm: Comm,
    intercomm: *mut Comm,
    array_of_errcodes: *mut c_int,
) -> c_int {
    let _inside = crossing::enter_as(Place::Collective);
    // SAFETY: as `comm_spawn`.
    unsafe {
        let infos = if is_root(comm, root) {
            usize::try_from(count).unwrap_or(0)
        } else {
            0
        };
        let infos = steps::Words::new(HandleKind::Info, array_of_info, infos);
        let mut word = 0;
        let code = steps::clocked(comm, |lower| {
            (lower.comm_spawn_multiple)(
                count,
                array_of_commands,
                array_of_argv,
                array_of_maxprocs,
                infos.refreshed(),
                abi::rank_to_neutral(root),
                abi::word(HandleKind::Communicator, comm),
                steps::place(intercomm, &mut word),
                array_of_errcodes,
            )
        });
        spawned(comm, code, intercomm, word, c"MPI_Comm_spawn_multiple")
    }
}

/// Gives the application the intercommunicator to what was spawned.
///
/// # Safety
/// Inside a stub; `word` must be what the lower half made.
unsafe fn spawned(
    comm: Comm,
    code: i32,
    place: *mut Comm,
    word: u64,
    name: &'static CStr,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        if code != 0 {
            return errhandler::raise(comm, code, name);
        }
        if let Err(code) = steps::adopt(HandleKind::Communicator, place, word) {
            return errhandler::raise(comm, code, name);
        }
        0
    }
}
