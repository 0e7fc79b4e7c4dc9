//! The peculiarities of real MPI libraries: functions that the standard does not have, and settings for one library alone. Each library has a file of its own;
//! this module alone chooses the one for this executable.
//!
//! If a library lacks a feature, its user falls back to the standard's functions.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

#[cfg(library = "abi")]
mod abi;
#[cfg(library = "mpich")]
mod mpich;
#[cfg(library = "openmpi")]
mod openmpi;
#[cfg(not(library = "openmpi"))]
mod rounds;

/// A library's own functions and settings.
pub struct Backend {
    /// Whether frequent calls may go down without a switch of FS.
    pub near: bool,
    /// Environment variables for the library, and their values.
    pub environment: &'static [(&'static str, &'static str)],
    /// The same for variables that the user may override.
    pub unless_told: &'static [(&'static str, &'static str)],
    /// Called when the library has been loaded, before other threads run: sets further variables, depending on how the library was built.
    pub loaded: Option<unsafe fn()>,
    /// Prints the message of the library's `MPI_ERRORS_ARE_FATAL`, and may end the job.
    pub fatal: Option<Fatal>,
    /// Has a function called again and again while a blocking function waits, at least while a checkpoint is pending. Returns which functions do this from now
    /// on.
    pub while_it_waits: Option<unsafe fn(Waiting) -> Calls>,
    /// Called when a checkpoint begins to be pending, and when none is pending any more.
    pub pending: Option<fn(bool)>,
    /// Tells the library, before it ends, that all other threads of this process have stopped for good. It then waits for no other thread inside it.
    pub alone: Option<unsafe fn()>,
    /// How long `MPI_Finalize` waits for the launcher's answer, if it returns without it.
    pub answers_within: Option<Duration>,
    /// Tells the launcher that this process ends as it should, where the library's own end does not come.
    pub told: Option<unsafe fn()>,
}

/// Whether this executable's library comes near; `stillpoint check` reads it in the file.
#[used]
#[unsafe(no_mangle)]
static STILLPOINT_NEAR: u32 = BACKEND.near as u32;

/// Called for an object of a kind, or for `None` if MPI is not running. The code is the library's own; the function is a name.
pub type Fatal =
    unsafe fn(on: Option<HandleKind>, object: Word, code: i32, function: *const c_char);
/// The blocking functions in which a library calls back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Calls {
    /// In none of them.
    Never,
    /// In collective operations. In others it may call before the operation that it waits for has begun.
    Collective,
    /// In all of them, and only once it waits.
    Always,
}

/// Returns how much has happened.
pub type Waiting = unsafe extern "C" fn() -> c_int;

/// The library that this executable is built for.
#[cfg(library = "abi")]
pub const BACKEND: Backend = abi::BACKEND;
/// The library that this executable is built for.
#[cfg(library = "mpich")]
pub const BACKEND: Backend = mpich::BACKEND;
/// The library that this executable is built for.
#[cfg(library = "openmpi")]
pub const BACKEND: Backend = openmpi::BACKEND;
