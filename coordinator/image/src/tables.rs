//! Regions and threads as the rest of Stillpoint handles them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use crate::format::ThreadRecord as Thread;

/// Bytes kept besides memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub name: String,
    /// The content's length; bytes that no run covers are zero.
    pub bytes: u64,
}

/// The kind of a region's memory, which decides how a restart makes it again.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegionKind {
    /// Private memory that starts as zeros.
    #[default]
    Anonymous = 1,
    /// A private mapping of a file: saved whole, or without the pages that are left to the file ([`crate::mapped_files`]).
    PrivateFile = 2,
    /// A shared mapping of a file that has a name: mapped again by path.
    SharedFile = 3,
    /// Shared memory without a name that no other process holds: made anew from its content.
    SharedAnonymous = 4,
    /// A System V segment that only this process has attached: made anew from its content.
    SystemV = 5,
}

impl RegionKind {
    pub(crate) fn from_u32(value: u32) -> Option<RegionKind> {
        use RegionKind::{Anonymous, PrivateFile, SharedAnonymous, SharedFile, SystemV};
        [Anonymous, PrivateFile, SharedFile, SharedAnonymous, SystemV]
            .into_iter()
            .find(|kind| *kind as u32 == value)
    }
}

/// One mapping of the upper half.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    /// `PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.
    pub protection: u32,
    pub kind: RegionKind,
    /// Bits of [`crate::format::vm_flags`].
    pub vm_flags: u64,
    /// The offset of the region's start in the backing file, or in the content.
    pub file_offset: u64,
    /// The path of a file; otherwise the name in `/proc/PID/maps`.
    pub name: String,
    /// The content with the bytes of a shared region, if they are in the image (see [`crate::Writer::content`]).
    pub content: Option<u32>,
}

impl Region {
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// Bits of [`Thread::flags`].
pub mod thread_flags {
    /// The process's main thread.
    pub const MAIN: u32 = 1;
    /// The thread that started MPI.
    pub const DRIVER: u32 = 2;
    /// The thread believes that it blocks SIGSYS, which is never blocked.
    pub const BELIEVES_SIGSYS: u32 = 4;
    /// The thread believes that it blocks the stop signal.
    pub const BELIEVES_STOP: u32 = 8;
    /// All flags: an image with others is not of this release.
    pub const ALL: u32 = MAIN | DRIVER | BELIEVES_SIGSYS | BELIEVES_STOP;
}
