//! What the generator makes of a packed status, compiled and tried. No ABI here has one yet; MPICH's does.

use crate::neutral;
use crate::openmpi::{
    error_from_neutral, error_to_neutral, rank_from_neutral, rank_to_neutral, tag_from_neutral,
    tag_to_neutral,
};

include!("../generator/golden/packed_status.rs");

#[test]
fn a_packed_status_keeps_every_value_there_and_back() {
    for cancelled in [0, 1] {
        for bytes in [0, 1, 0xffff_ffff, 0x12_3456_789a, (1 << 63) - 1] {
            let mut neutral = neutral::Status {
                source: -3,
                tag: 5,
                error: 0,
                internal: [cancelled, 0, 0, 0, 0],
            };
            neutral.set_bytes(bytes);
            let packed = Status::from_neutral(&neutral);
            assert_eq!(packed.to_neutral(), neutral);
            assert_eq!(packed.count_hi_and_cancelled & 1, cancelled);
            assert_eq!(Status::from_neutral(&packed.to_neutral()), packed);
        }
    }
}

#[test]
fn a_packed_status_has_each_bit_where_its_header_has_it() {
    let status = Status {
        count_lo: -1,
        count_hi_and_cancelled: (3 << 1) | 1,
        source: 7,
        tag: 9,
        error: 0,
        unused: 0,
    };
    let neutral = status.to_neutral();
    assert_eq!(neutral.bytes(), 0x3_ffff_ffff);
    assert!(neutral.cancelled());
    assert_eq!((neutral.source, neutral.tag), (7, 9));
}
