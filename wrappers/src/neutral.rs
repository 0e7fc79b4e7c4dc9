//! The neutral form in which MPI values travel between the halves.
//!
//! Integers with a special meaning (ranks, tags, error classes, comparison results, ...) have the values of the MPI 5.0 standard ABI (MPI 5.0, chapter 20).
//! Handles are words of the *current* lower half; the upper half never interprets them and forgets them all at a restart.

/// A handle of the current lower half: an opaque word, valid for one launch only.
pub type Word = u64;

/// `MPI_Status` of the standard ABI (MPI 5.0, section 20.3.2): 32 bytes.
///
/// `internal` belongs to the lower half, which keeps the values for `MPI_Get_count` and `MPI_Test_cancelled` there: word 0 is the cancelled flag, words 2 and 3
/// hold the number of bytes received, low half first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub error: i32,
    pub internal: [i32; 5],
}

const _: () = assert!(core::mem::size_of::<Status>() == 32);

impl Status {
    /// The number of bytes that the message held.
    pub fn bytes(&self) -> u64 {
        (self.internal[2] as u32 as u64) | ((self.internal[3] as u32 as u64) << 32)
    }

    /// Notes the number of bytes that the message held.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[2] = bytes as u32 as i32;
        self.internal[3] = (bytes >> 32) as u32 as i32;
    }

    /// Whether the operation was cancelled (`MPI_Test_cancelled`).
    pub fn cancelled(&self) -> bool {
        self.internal[0] != 0
    }
}

/// Standard-ABI values of the constants that both halves use.
pub mod constants {
    pub const ANY_SOURCE: i32 = -1;
    pub const ANY_TAG: i32 = -2;
    pub const PROC_NULL: i32 = -3;
    pub const UNDEFINED: i32 = -32766;
    pub const SUCCESS: i32 = 0;
}
