//! Functions that are refused by name, and spawned processes, for which the generator alone cannot pass calls through.
//!
//! No image carries them (see `ground::hindrances`); as long as they live they are the lower half's.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, CommHandle, Handle, InfoHandle, ListOf, PlaceOf};
use crate::ground::crossing::{self, StayKind};
use crate::ground::handle;
use crate::ground::object::{Comm, Info, Object};
use crate::objects::errhandler;
use crate::objects::outcome::class;
use crate::operations::clock::kept::Input;
use crate::stubs::steps;
use stillpoint_wrappers::standard;

/// The reason for refusing a function that an ABI has.
#[derive(Clone, Copy)]
pub enum RefusalReason {
    Session,
    Partitioned,
    Event,
    Extension,
    Newer,
}

impl RefusalReason {
    const fn text(self) -> &'static str {
        match self {
            RefusalReason::Session => "sessions are refused",
            RefusalReason::Partitioned => "partitioned communication is refused",
            RefusalReason::Event => "there are no events of the tool interface",
            RefusalReason::Extension => "extensions of one library are refused",
            RefusalReason::Newer => "some functions that are newer than MPI-3.1 are refused",
        }
    }
}

/// Refuses a function that has no counterpart: says so, and fails as MPI does.
///
/// # Safety
/// On a thread of the application, as a stub.
pub unsafe fn refuse(name: &'static CStr, why: RefusalReason) -> isize {
    let _inside = crossing::enter();
    if matches!(why, RefusalReason::Event) {
        // There is no event, so every index of one is wrong.
        return abi::error_from_neutral(standard::T_ERR_INVALID_INDEX) as isize;
    }
    crate::stubs::crash::say(format_args!(
        "stillpoint: {} is not carried: {}",
        name.to_str().unwrap_or_default(),
        why.text()
    ));
    // SAFETY: inside; no object is named.
    unsafe { errhandler::raise(ptr::null_mut(), class::UNSUPPORTED_OPERATION, name) as isize }
}

/// The live object that a place leads to.
///
/// # Safety
/// `place` must be null or hold a handle.
pub(super) unsafe fn live<H: Handle>(place: PlaceOf<H>, kind: HandleKind) -> Option<*mut Object> {
    // SAFETY: a place that is not null holds a handle, by the caller's promise, and `valid` looks at it.
    unsafe {
        let object = if place.is_null() {
            ptr::null_mut()
        } else {
            place.get()
        };
        let usable = handle::valid(object, kind) && !abi::predefined::is_null_handle(object);
        usable.then_some(object)
    }
}

/// Ends an object that the lower half has freed, and gives the application the null handle.
///
/// # Safety
/// Inside a stub; `place` must hold a live handle.
pub(super) unsafe fn end<H: Handle>(place: PlaceOf<H>, kind: HandleKind) {
    // SAFETY: the place holds a live handle, by the caller's promise; the application's own holder of the object ends here.
    unsafe {
        let object = place.get();
        place.set(abi::predefined::null_handle(kind));
        // Holders of the object must not reach the lower half by it.
        (*object).lower = abi::predefined::null_word(kind);
        handle::release(object);
    }
}

/// Whether this process is the root of an operation on an intracommunicator.
///
/// # Safety
/// `comm` must be null or a handle.
unsafe fn is_root(comm: Comm, root: c_int) -> bool {
    // SAFETY: `comm` is null or a handle, by the caller's promise; its rank is read only if it is alive.
    unsafe { handle::valid(comm, HandleKind::Communicator) && (*comm).rank == root }
}

/// `MPI_Comm_spawn`. Only the root looks at the arguments.
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
    intercomm: PlaceOf<CommHandle>,
    array_of_errcodes: *mut c_int,
) -> c_int {
    let _inside = crossing::enter_as(StayKind::Collective);
    // SAFETY: inside a stub; handles as MPI asks for them.
    unsafe {
        let info = if is_root(comm, root) {
            info
        } else {
            ptr::null_mut()
        };
        if let Err(code) = steps::info_below(info) {
            return errhandler::raise(comm, code, c"MPI_Comm_spawn");
        }
        let mut word = 0;
        let code = steps::clocked(comm, c"MPI_Comm_spawn", Input::Changed, |lower| {
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

/// `MPI_Comm_spawn_multiple`. Only the root looks at the arrays.
///
/// # Safety
/// As the MPI function.
#[allow(clippy::too_many_arguments)] // MPI's.
pub unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: ListOf<InfoHandle>,
    root: c_int,
    comm: Comm,
    intercomm: PlaceOf<CommHandle>,
    array_of_errcodes: *mut c_int,
) -> c_int {
    let _inside = crossing::enter_as(StayKind::Collective);
    // SAFETY: MPI demands handles, and arrays of `count` elements at the root, which alone has them read; the other ranks have no info looked at.
    unsafe {
        let infos = if is_root(comm, root) {
            usize::try_from(count).unwrap_or(0)
        } else {
            0
        };
        for info in array_of_info.objects(infos) {
            if let Err(code) = steps::info_below(info) {
                return errhandler::raise(comm, code, c"MPI_Comm_spawn_multiple");
            }
        }
        let infos = steps::Words::new(HandleKind::Info, array_of_info, infos);
        let mut word = 0;
        let code = steps::clocked(comm, c"MPI_Comm_spawn_multiple", Input::Changed, |lower| {
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

/// Gives the application the intercommunicator to the spawned processes.
///
/// # Safety
/// Inside a stub; `comm` must lead to an object, `place` be null or writable, and `word` the one that the lower half made.
unsafe fn spawned(
    comm: Comm,
    code: i32,
    place: PlaceOf<CommHandle>,
    word: u64,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `word` is a communicator that the lower half has made, and `place` is null or writable, by the caller's promise.
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
