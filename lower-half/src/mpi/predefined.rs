//! The words of predefined handles.

use stillpoint_wrappers::gpu_queries::TAKES_GPUS;
use stillpoint_wrappers::neutral::Word;

use super::{gpu_support, library};

/// `MPI_COMM_WORLD` of the standard's ABI.
pub const WORLD: i32 = 257;
/// Its `MPI_COMM_SELF`.
#[cfg(not(library = "openmpi"))]
pub const SELF: i32 = 258;

/// Returns the word of a predefined handle, by the number of its `HandleKind` and its standard-ABI value. Returns the kind's null handle for a value that the
/// library has no handle for, and 0 for a kind that it does not have.
///
/// Implements `Services::predefined`: reads two tables, and uses neither thread-local storage nor a libc.
pub extern "C" fn predefined(kind: u32, standard: i32) -> Word {
    if kind == TAKES_GPUS {
        return gpu_support::says(standard);
    }
    let mut null = 0;
    for (of, value, is_null, word) in library::predefined() {
        if of as u32 != kind {
            continue;
        }
        if value == standard {
            return word;
        }
        if is_null {
            null = word;
        }
    }
    null
}

#[cfg(all(test, library = "openmpi"))]
mod tests {
    use super::*;
    use mpi_sys as ffi;
    use stillpoint_wrappers::gate::HandleKind;

    #[test]
    fn words_are_the_handles_of_the_real_mpi() {
        let word = |kind: HandleKind, standard| predefined(kind as u32, standard);
        // SAFETY: rsmpi's statics are copies of MPI's handles, which are pointers, as wide as a word.
        unsafe {
            let bits = |handle: &ffi::MPI_Comm| std::mem::transmute_copy::<_, Word>(handle);
            assert_eq!(
                word(HandleKind::Communicator, 257),
                bits(&ffi::RSMPI_COMM_WORLD)
            );
            assert_eq!(
                word(HandleKind::Communicator, 256),
                bits(&ffi::RSMPI_COMM_NULL)
            );
            let bits = |handle: &ffi::MPI_Datatype| std::mem::transmute_copy::<_, Word>(handle);
            assert_eq!(word(HandleKind::Datatype, 532), bits(&ffi::RSMPI_DOUBLE));
            let bits = |handle: &ffi::MPI_Op| std::mem::transmute_copy::<_, Word>(handle);
            assert_eq!(word(HandleKind::Operator, 33), bits(&ffi::RSMPI_SUM));
        }
    }

    #[test]
    fn a_value_without_a_handle_gives_the_null_handle_of_its_kind() {
        let kind = HandleKind::Datatype as u32;
        assert_eq!(predefined(kind, 736), predefined(kind, 512));
        assert_eq!(predefined(HandleKind::Session as u32, 288), 0);
    }
}
