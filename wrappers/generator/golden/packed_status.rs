use core::mem::{offset_of, size_of};

/// `MPI_Status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `count_lo`
    pub count_lo: i32,
    /// `count_hi_and_cancelled`
    pub count_hi_and_cancelled: i32,
    pub source: i32,
    pub tag: i32,
    pub error: i32,
}

const _: () = assert!(size_of::<Status>() == 20);
const _: () = assert!(offset_of!(Status, count_lo) == 0);
const _: () = assert!(offset_of!(Status, count_hi_and_cancelled) == 4);
const _: () = assert!(offset_of!(Status, source) == 8);
const _: () = assert!(offset_of!(Status, tag) == 12);
const _: () = assert!(offset_of!(Status, error) == 16);

impl Status {
    /// The status in the neutral form.
    #[inline(always)]
    pub fn to_neutral(self) -> neutral::Status {
        let mut status = neutral::Status {
            source: rank_to_neutral(self.source),
            tag: tag_to_neutral(self.tag),
            error: error_to_neutral(self.error),
            internal: [((self.count_hi_and_cancelled as u32 as u64) & 0x1) as i32, 0, 0, 0, 0],
        };
        status.set_bytes(
            ((self.count_lo as u32 as u64) & 0xffffffff) | (
                (((self.count_hi_and_cancelled as u32 as u64) >> 1) & 0x7fffffff) << 32
            )
        );
        status
    }

    /// The form that a neutral status has here.
    #[inline(always)]
    pub fn from_neutral(status: &neutral::Status) -> Self {
        Self {
            count_lo: (status.bytes() & 0xffffffff) as i32,
            count_hi_and_cancelled: (
                (((status.bytes() >> 32) & 0x7fffffff) << 1) | (u64::from(status.cancelled()) & 0x1)
            ) as i32,
            source: rank_from_neutral(status.source),
            tag: tag_from_neutral(status.tag),
            error: error_from_neutral(status.error),
        }
    }
}
