//! What a real MPI does in its own way: what the standard has no function for, and what has to be said to one library alone. A file for each
//! library; which of them this executable is built for is chosen here, and nowhere else.
//!
//! What a library has not got falls back to what the standard offers, where it is used.

use std::ffi::{c_char, c_int};

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

/// A library's own ways.
pub struct Backend {
    /// Whether frequent calls may go down without a switch of FS.
    pub near: bool,
    /// Variables that it shall find in its environment, and their values.
    pub environment: &'static [(&'static str, &'static str)],
    /// The same, where the user says nothing else.
    pub unless_told: &'static [(&'static str, &'static str)],
    /// Is told when the library is loaded, and no other thread runs yet: what else it shall find, depending on how it was built.
    pub loaded: Option<unsafe fn()>,
    /// Says what its `MPI_ERRORS_ARE_FATAL` says, and may end the job.
    pub fatal: Option<Fatal>,
    /// Has a function called again and again while a blocking function waits, as long as a checkpoint is pending at least. Whether that is so from now on.
    pub while_it_waits: Option<unsafe fn(Waiting) -> Calls>,
    /// Is told when a checkpoint begins to be pending, and when none is any more.
    pub pending: Option<fn(bool)>,
    /// Tells it, before it ends, that nobody else of this process does anything any more: it waits for no other thread, since those that it has let in stand still for good, and
    /// does not complain of what they leave open.
    pub alone: Option<unsafe fn()>,
}

/// Whether this executable's library comes near, for `stillpoint check`, which reads it in the file.
#[used]
#[unsafe(no_mangle)]
static STILLPOINT_NEAR: u32 = BACKEND.near as u32;

/// On an object of a kind, or `None`: where MPI is not running. The code is the library's own, the function a name.
pub type Fatal =
    unsafe fn(on: Option<HandleKind>, object: Word, code: i32, function: *const c_char);
/// In which of its blocking functions a library calls back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Calls {
    /// In none.
    Never,
    /// In collective operations. Elsewhere it may call before it has begun what it will wait for.
    Collective,
    /// In all of them, and only once it waits.
    Always,
}

/// Answers how much has happened.
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
