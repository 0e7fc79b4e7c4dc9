//! Open MPI, which this executable is linked to, through rsmpi's bindings. Programs have the same ABI: texts have the length that they expect, and a status
//! contains all of its values.
//!
//! Versions 4.1 and 5.0 are one library to the dynamic linker. A symbol that one of them lacks must not prevent the executable from starting: predefined
//! handles may be absent, and functions that `mpi.h` does not declare are looked up by name ([`named`]).

use std::ffi::{CStr, c_char, c_void};
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

/// Functions that it exports but its `mpi.h` does not declare.
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

/// The table is correct as it is.
pub fn adapt(_: &mut Dispatch) {}

/// Returns the handle's word.
pub fn word(handle: Handle) -> Word {
    handle
}

/// The dynamic linker has already loaded the library.
pub fn load(_: Option<&Path>, _: &str) -> Result<(), String> {
    Ok(())
}

/// Returns the address of a function of the library that not every version has.
pub fn symbol(name: &'static CStr) -> Option<*const c_void> {
    named::Named::new(name).found()
}

/// A symbol's address from the dynamic linker; null if the library lacks the symbol.
#[repr(transparent)]
pub struct Address(*const c_void);

// SAFETY: the address is only a number here: nothing reads or writes through it.
unsafe impl Sync for Address {}

/// Returns the predefined handles: kind, standard-ABI value, whether it is its kind's null handle, and the word.
pub fn predefined() -> impl Iterator<Item = (HandleKind, i32, bool, Word)> {
    let entries = abi::PREDEFINED.iter().zip(&symbols::ADDRESSES);
    entries.filter_map(|(entry, address)| {
        let word = address.0.addr() as Word;
        (word != 0).then_some((entry.kind, entry.standard, entry.is_null(), word))
    })
}

/// Makes a status for a function to write to.
pub fn blank(status: &Status) -> abi::Status {
    abi::Status::from_neutral(status)
}

/// Makes a status for a function to read from.
pub fn given(status: &Status) -> abi::Status {
    abi::Status::from_neutral(status)
}

/// Converts a status that a function has written, whose error was `before` in the neutral form.
pub fn written(status: &abi::Status, _before: i32) -> Status {
    status.to_neutral()
}

/// A place for a text: the caller's own.
pub struct Text(*mut c_char);

/// # Safety
/// `place` must be as long as the program's ABI demands.
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
