//! The words of predefined handles: under Open MPI the addresses of its data symbols.

use std::ffi::c_void;

use super::abi::PREDEFINED;
use stillpoint_wrappers::neutral::Word;

use super::generated::symbols::ADDRESSES;

/// A symbol's address, as the dynamic linker filled it in.
pub struct Address(*const c_void);

// SAFETY: a number that nobody follows here.
unsafe impl Sync for Address {}

impl Address {
    pub const fn of(symbol: *const c_void) -> Self {
        Self(symbol)
    }
}

/// The word of a predefined handle, by the number of its `HandleKind` and its standard-ABI value; a kind's null
/// handle for a value that Open MPI has no handle for, 0 for a kind that it does not have (sessions).
///
/// `Services::predefined`: reads two tables, touches neither thread-local storage nor a libc.
pub extern "C" fn predefined(kind: u32, standard: i32) -> Word {
    let mut null = 0;
    for (entry, address) in PREDEFINED.iter().zip(&ADDRESSES) {
        if entry.kind as u32 != kind {
            continue;
        }
        let word = address.0.addr() as Word;
        if entry.standard == standard {
            return word;
        }
        if entry.is_null() {
            null = word;
        }
    }
    null
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_sys as ffi;
    use stillpoint_wrappers::gate::HandleKind;

    #[test]
    fn words_are_the_handles_of_the_real_mpi() {
        let word = |kind: HandleKind, standard| predefined(kind as u32, standard);
        // SAFETY: rsmpi's statics are copies of MPI's handles, which are pointers.
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
