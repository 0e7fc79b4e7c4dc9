//! MPICH's values and layouts, which Intel MPI, MVAPICH and Cray MPICH share, and their conversion to neutral ones.
//!
//! Made by `wrappers/generator` from `wrappers/abi/mpich.txt`, like [`crate::openmpi`].

pub use crate::predefined::{Numbered, Numbered as Entry, null_handle};

include!(concat!(env!("OUT_DIR"), "/mpich.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    every_conversion!("mpich", |class| class <= T_ERR_INVALID && class != 54);

    #[test]
    fn a_status_keeps_every_value_there_and_back() {
        for cancelled in [0, 1] {
            for bytes in [0, 1, 0xffff_ffff, 0x12_3456_789a, (1 << 63) - 1] {
                let mut neutral = neutral::Status {
                    source: -3,
                    tag: 5,
                    error: 0,
                    internal: [cancelled, 0, 0, 0, 0],
                };
                neutral.set_bytes(bytes);
                let own = Status::from_neutral(&neutral);
                assert_eq!(own.to_neutral(), neutral);
                assert_eq!(own.count_hi_and_cancelled & 1, cancelled);
                assert_eq!(Status::from_neutral(&own.to_neutral()), own);
            }
        }
    }

    #[test]
    fn a_status_has_each_bit_where_the_header_has_it() {
        let status = Status {
            count_lo: -1,
            count_hi_and_cancelled: (3 << 1) | 1,
            source: 7,
            tag: 9,
            error: 0,
        };
        let neutral = status.to_neutral();
        assert_eq!(neutral.bytes(), 0x3_ffff_ffff);
        assert!(neutral.cancelled());
        assert_eq!((neutral.source, neutral.tag), (7, 9));
    }
}
