//! Open MPI 4.1's values and layouts (its `mpi.h`), and their conversion to neutral ones. Both the application's side (`upper-half/src/ground/abi`) and the
//! real MPI's side (`lower-half/src/mpi`) need them when that MPI is Open MPI.
//!
//! `wrappers/generator` (`emit/abi.rs`; a sample is in `golden/openmpi.rs`) generates all of it from one description, `wrappers/abi/openmpi.txt`. Another ABI
//! is another description, and another module like this one.

pub use crate::predefined::{Predefined, Predefined as Entry, null_handle};

include!(concat!(env!("OUT_DIR"), "/openmpi.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    every_conversion!("openmpi", |_| true);

    #[test]
    fn codes_that_a_program_adds_follow_the_last_predefined_one() {
        assert_eq!(error_to_neutral(ERR_LASTCODE + 1), NEUTRAL_ERR_LASTCODE + 1);
        assert_eq!(
            error_from_neutral(NEUTRAL_ERR_LASTCODE + 7),
            ERR_LASTCODE + 7
        );
    }

    #[test]
    fn a_status_keeps_every_field_there_and_back() {
        let status = Status {
            source: -2,
            tag: -1,
            error: 15,
            cancelled: 1,
            bytes: 0x12_3456_789a,
        };
        let neutral = status.to_neutral();
        assert_eq!((neutral.source, neutral.tag, neutral.error), (-3, -2, 15));
        assert!(neutral.cancelled());
        assert_eq!(neutral.bytes(), 0x12_3456_789a);
        assert_eq!(Status::from_neutral(&neutral), status);
    }

    #[test]
    fn predefined_handles_are_sorted_and_distinct() {
        let keys: std::vec::Vec<_> = PREDEFINED
            .iter()
            .map(|entry| (entry.kind as u32, entry.standard))
            .collect();
        assert!(keys.is_sorted());
        let mut symbols: std::vec::Vec<_> = PREDEFINED.iter().map(|entry| entry.symbol).collect();
        symbols.sort();
        symbols.dedup();
        assert_eq!(symbols.len(), PREDEFINED.len());
    }
}
