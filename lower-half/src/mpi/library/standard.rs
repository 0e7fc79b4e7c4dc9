//! Any library with the MPI 5.0 standard's ABI, loaded at launch: functions are looked up by name. Values are the neutral ones, with two exceptions: the inner
//! fields of a status, which each library arranges in its own way, and error codes, for which the standard gives only classes.
//!
//! * [`missing`] - functions that the standard has removed, made from those that it has
//! * `quiet` - errors that are returned to the caller

mod quiet;
mod removed;

pub use quiet::adapt;

pub use stillpoint_wrappers::abi;
pub use stillpoint_wrappers::abi::weights_from_neutral;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

pub use super::loaded::ffi;
pub use super::loaded::found::{self, load, named as symbol};
pub use super::loaded::imports;
pub use super::loaded::texts::text;

/// A handle as the library has it in memory.
pub type Handle = Word;

/// Returns the handle's word.
pub fn word(handle: Handle) -> Word {
    handle
}

/// Its names.
pub const NAMES: [&str; 1] = [abi::LIBRARY];

/// Functions that have another name there, or none.
pub mod missing {
    pub use super::ffi::*;
    pub use super::removed::*;
}

/// Returns the predefined handles: kind, standard-ABI value, whether it is its kind's null handle, and the word.
pub fn predefined() -> impl Iterator<Item = (HandleKind, i32, bool, Word)> {
    abi::PREDEFINED.iter().map(|entry| {
        let word = entry.value as Word;
        (entry.kind, entry.standard, entry.is_null(), word)
    })
}

/// Converts an error code to its class, which is the neutral value.
pub fn error_to_neutral(code: i32) -> i32 {
    if code == 0 {
        return 0;
    }
    let mut class = code;
    // SAFETY: the place lives on this stack.
    let failed = unsafe { ffi::MPI_Error_class(code, &raw mut class) };
    if failed == 0 { class } else { abi::ERR_UNKNOWN }
}

/// Makes a status for a function to write to.
pub fn blank(status: &Status) -> abi::Status {
    let mut own = abi::Status::default();
    (own.source, own.tag, own.error) = (status.source, status.tag, status.error);
    own
}

/// Makes a status for a function to read from.
pub fn given(status: &Status) -> abi::Status {
    let mut own = blank(status);
    let place = (&raw mut own).cast();
    // SAFETY: the status is our own and lives on this stack.
    unsafe {
        ffi::MPI_Status_set_elements_x(place, BYTE, status.bytes() as i64);
        ffi::MPI_Status_set_cancelled(place, status.cancelled().into());
    }
    own
}

/// `MPI_BYTE`.
const BYTE: Word = 583;

/// Converts a status that a function has written, whose error was `before` in the neutral form: most functions leave it unchanged.
pub fn written(status: &abi::Status, before: i32) -> Status {
    let error = match status.error {
        same if same == before => before,
        code => error_to_neutral(code),
    };
    let mut neutral = Status {
        source: status.source,
        tag: status.tag,
        error,
        ..Status::default()
    };
    let place = (&raw const *status).cast();
    let (mut cancelled, mut bytes) = (0, 0);
    // SAFETY: the status is alive (a reference), and a function of the library has written it, or it is blank; the places live on this stack.
    unsafe {
        ffi::MPI_Test_cancelled(place, &raw mut cancelled);
        ffi::MPI_Get_elements_x(place, BYTE, &raw mut bytes);
    }
    neutral.internal[0] = cancelled;
    neutral.set_bytes(bytes.max(0) as u64);
    neutral
}
