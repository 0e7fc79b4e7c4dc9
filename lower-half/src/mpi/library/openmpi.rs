//! Open MPI, which this executable is linked to, through rsmpi's bindings. Programs have the same ABI: a text is as long as they expect, and a status
//! says itself what it says.
//!
//! Versions 4.1 and 5.0 are one library to the dynamic linker, and what one of them lacks must not keep the executable from starting: predefined handles
//! may be absent, and what `mpi.h` does not declare is looked up by its name ([`named`]).

use std::ffi::{c_char, c_void};
use std::path::Path;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::lengths::Lengths;
use stillpoint_wrappers::neutral::{Status, Word};
pub use stillpoint_wrappers::openmpi as abi;

pub use abi::{error_to_neutral, weights_from_neutral};
pub use mpi_sys as ffi;

/// Open MPI's data symbols for predefined handles, as its library defines them.
mod symbols {
    include!(concat!(env!("OUT_DIR"), "/addresses.rs"));
}

pub(crate) mod named;

/// What it exports and its `mpi.h` does not declare.
#[allow(
    non_snake_case,
    clippy::too_many_arguments,
    reason = "MPI's names and parameters"
)]
pub mod missing {
    include!(concat!(env!("OUT_DIR"), "/missing.rs"));
}

/// A handle as the library has it in memory.
pub type Handle = Word;

/// The table is right as it is.
pub fn adapt(_: &mut Dispatch) {}

/// The handle's word.
pub fn word(handle: Handle) -> Word {
    handle
}

/// The dynamic linker has loaded it.
pub fn load(_: Option<&Path>, _: &str) -> Result<(), String> {
    Ok(())
}

/// A symbol's address, as the dynamic linker filled it in; null where the library has not got it.
#[repr(transparent)]
pub struct Address(*const c_void);

// SAFETY: a number that nobody follows here.
unsafe impl Sync for Address {}

/// Predefined handles: kind, standard-ABI value, whether it is its kind's null handle, the word.
pub fn predefined() -> impl Iterator<Item = (HandleKind, i32, bool, Word)> {
    let entries = abi::PREDEFINED.iter().zip(&symbols::ADDRESSES);
    entries.filter_map(|(entry, address)| {
        let word = address.0.addr() as Word;
        (word != 0).then_some((entry.kind, entry.standard, entry.is_null(), word))
    })
}

/// A status that a function is given to write to.
pub fn blank(status: &Status) -> abi::Status {
    abi::Status::from_neutral(status)
}

/// A status that a function is given to read from.
pub fn given(status: &Status) -> abi::Status {
    abi::Status::from_neutral(status)
}

/// A status that a function has written, whose error was `before` in the neutral form.
pub fn written(status: &abi::Status, _before: i32) -> Status {
    status.to_neutral()
}

/// A place for a text: the caller's own.
pub struct Text(*mut c_char);

/// # Safety
/// As long as the program's ABI says.
pub unsafe fn text(place: *mut c_char, _: impl Fn(&Lengths) -> usize) -> Text {
    Text(place)
}

impl Text {
    pub fn place(&mut self) -> *mut c_char {
        self.0
    }

    /// # Safety
    /// None.
    pub unsafe fn give(&self, _length: *mut i32, _code: i32) {}
}
