//! The MPI 5.0 standard's own ABI: values, layouts, and their conversion to neutral ones, which most of them are.
//!
//! Made by `wrappers/generator` from `wrappers/abi/abi.txt`, like [`crate::openmpi`].

pub use crate::predefined::{Numbered, Numbered as Entry, null_handle};

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    every_conversion!("abi", |_| true);

    /// Sets whose values in the neutral form are Open MPI's.
    const OTHERS: [&str; 5] = ["darg", "verbosity", "bind", "scope", "pvarclass"];

    #[test]
    fn its_values_are_the_neutral_ones() {
        let input = stillpoint_generator::emit::input("abi").unwrap();
        for integer in input.abi.integers.iter().chain(&input.abi.addresses) {
            let differs = OTHERS.contains(&integer.set.as_str());
            assert_eq!(integer.own != integer.standard, differs, "{}", integer.name);
        }
        for handle in &PREDEFINED {
            assert_eq!(handle.value, handle.standard, "{:?}", handle.name);
        }
    }

    #[test]
    fn a_status_is_the_neutral_one() {
        let neutral = neutral::Status {
            source: -3,
            tag: 5,
            error: 7,
            internal: [1, 0, -2, 3, 0],
        };
        let status = Status::from_neutral(&neutral);
        assert_eq!(status.to_neutral(), neutral);
        assert_eq!((status.cancelled, status.bytes_low), (1, -2));
        assert_eq!(size_of::<Status>(), size_of::<neutral::Status>());
    }
}
