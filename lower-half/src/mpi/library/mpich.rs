//! MPICH, and the libraries that share its ABI, loaded at launch. Handles are numbers of 32 bits, in the lower half of a word. An error code contains its
//! class, and more that is the library's own.

pub use super::loaded::ffi;
pub use super::loaded::found::{self, load, named as symbol};
pub use super::loaded::imports;
pub use super::loaded::texts::text;
pub use stillpoint_wrappers::mpich as abi;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

/// Its names: Debian's, and the usual one.
pub const NAMES: [&str; 2] = [abi::LIBRARY, "libmpi.so.12"];

/// It has all functions, some of them under their names in MPI-4.
pub use super::loaded::ffi as missing;

/// A handle as the library has it in memory.
pub type Handle = i32;

/// The table is correct as it is.
pub fn adapt(_: &mut Dispatch) {}

/// Returns the handle's word.
pub fn word(handle: Handle) -> Word {
    handle.cast_unsigned().into()
}

/// Returns the predefined handles: kind, standard-ABI value, whether it is its kind's null handle, and the word.
pub fn predefined() -> impl Iterator<Item = (HandleKind, i32, bool, Word)> {
    let entries = abi::PREDEFINED.iter();
    entries.map(|entry| {
        (
            entry.kind,
            entry.standard,
            entry.is_null(),
            word(entry.value),
        )
    })
}

/// Converts an error code to a neutral one by its class. Classes without a neutral form become "other".
pub fn error_to_neutral(code: i32) -> i32 {
    if code == 0 {
        return 0;
    }
    let mut class = code;
    // SAFETY: the place lives on this stack.
    let failed = unsafe { ffi::MPI_Error_class(code, &raw mut class) };
    let known = failed == 0 && class <= abi::T_ERR_INVALID;
    abi::error_to_neutral(if known { class } else { abi::ERR_OTHER })
}

/// Converts pointers that are not addresses: the library's data contains them.
pub fn weights_from_neutral(pointer: *const i32) -> *const i32 {
    let held = abi::WEIGHTS.iter().find(|it| it.1 == pointer.addr());
    match held.and_then(|it| found::named(it.0)) {
        // SAFETY: the library's symbol with this name is such a pointer, and the library stays loaded.
        Some(place) => unsafe { place.cast::<*const i32>().read() },
        None => pointer,
    }
}

/// Makes a status for a function to write to.
pub fn blank(status: &Status) -> abi::Status {
    abi::Status::from_neutral(status)
}

/// Makes a status for a function to read from.
pub fn given(status: &Status) -> abi::Status {
    abi::Status::from_neutral(status)
}

/// Converts a status that a function has written, whose error was `before` in the neutral form: most functions leave it unchanged.
pub fn written(status: &abi::Status, before: i32) -> Status {
    let mut neutral = status.to_neutral();
    neutral.error = match status.error == abi::error_from_neutral(before) {
        true => before,
        false => error_to_neutral(status.error),
    };
    neutral
}
