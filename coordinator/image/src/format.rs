//! The layout of an image.
//!
//! ```text
//!        0 ┌──────────────────────────────────────────────────────────────┐
//!          │ Header (64 bytes): magic, version, byte order, where the      │
//!          │ section table is, how long the file is, checksum              │
//!       64 ├──────────────────────────────────────────────────────────────┤
//!          │ page data: chunks, back to back, in any order; each is up to  │
//!          │ 1 MiB of pages, stored as it is, lz4 or zstd                  │
//!          ├──────────────────────────────────────────────────────────────┤
//!          │ the other sections, back to back:                             │
//!          │   IDENTITY     JSON: job, epoch, rank, size                   │
//!          │   ENVIRONMENT  JSON: kernel, CPU features, MPI, gate version  │
//!          │   REGIONS      RegionRecord[]: mappings, in order of address  │
//!          │   THREADS      ThreadRecord[]: the main thread first          │
//!          │   CONTENTS     ContentRecord[]: what else holds pages than    │
//!          │                memory: unlinked files, shared mappings, pipes │
//!          │   RUNS         RunRecord[]: which pages, chunk by chunk; or   │
//!          │   PACKED RUNS  the same in few bytes, where they are many     │
//!          │   CHUNKS       ChunkRecord[]: where their bytes are           │
//!          │   ORIGINS      JSON: earlier epochs' images that hold chunks  │
//!          │   SIBLINGS     JSON: ranks whose images of this epoch do      │
//!          │   DEVICES      JSON: which contents are memory of devices     │
//!          │   STRINGS      UTF-8 text that records point into             │
//!          │   DESCRIPTORS  JSON                                           │
//!          │   INVENTORY    JSON: the MPI objects alive                    │
//!          │   BLOB*        state of other modules, opaque here, each with │
//!          │                a name and a version                           │
//!          ├──────────────────────────────────────────────────────────────┤
//!          │ section table: SectionRecord[]                                │
//!          ├──────────────────────────────────────────────────────────────┤
//!          │ Trailer (24 bytes): magic, how long the file is, the header's │
//!          │ checksum                                                      │
//!      end └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! * All numbers are little-endian.
//! * Sections and chunks leave no gap, so that every byte of the file is covered by a checksum: the
//!   header's own, the section table's (in the header), a section's (in the table), a chunk's (in its
//!   record). The checksum of the page data section is that of its chunks' checksums, in file order.
//! * A *run* is a stretch of bytes that are in the image; a byte of a region or content that no run
//!   covers is zero. `space` 0 is memory, and `address` is an address then; `space` k is the k-th record of CONTENTS, and
//!   `address` is an offset in it. Runs of one space never overlap.
//! * A chunk holds the bytes of `runs` consecutive runs, the first being `first_run`.
//! * The tables name every byte of memory, but a chunk may lie in an earlier epoch's image: `origin` 0 is this file, k the k-th
//!   of ORIGINS. A chunk of an earlier image is *carried*. The file's own chunks come first, then the carried ones, by origin and
//!   offset; the checksum of the page data section covers the own ones. ORIGINS gives each image's epoch, directory and file
//!   name, length and digest, ascending by epoch and rank. An image that needs chunks of its origins' own origins names those
//!   images itself.
//! * SIBLINGS continues the numbers behind the origins: ranks, ascending, whose images of this very epoch hold chunks, and lie
//!   beside this one. A chunk there is *shared*. An image may be its own sibling: then the chunk is one of its own, and holds
//!   other memory too. A sibling's length and digest are not known when the image is written; the manifest has the digests of all
//!   images.
//! * DEVICES names contents that are a device's memory: the device by its 32 hexadecimal digits, and the content by its number. All bytes
//!   of the content are memory of the device, and nothing else in the image points to it.
//! * If several places in memory have a chunk's bytes, each place has a record of the chunk; these records stand side by side.
//! * Carried chunks are memory, or a device's. The content may have another number in the origin: the chunk's record has the number in this
//!   image.
//! * Some bytes of a carried chunk may not be memory any more. The chunk's runs still have all of its bytes, one behind the other; runs
//!   that are *dead* have `space` [`NOWHERE`] and address 0.
//! * Runs of memory may begin at any address and have any length: one page may have bytes in several chunks.
//! * Checksums are 64-bit XXH3. The image's *digest*, which the manifest records, is the 128-bit XXH3
//!   of header, section table and trailer; through their checksums it covers every byte.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first eight bytes of an image.
pub const MAGIC: [u8; 8] = *b"STILLIMG";
/// The first eight bytes of the trailer.
pub const END_MAGIC: [u8; 8] = *b"STILLEND";
/// The version of the format; it rises with every change that an older reader would misunderstand.
pub const VERSION: u32 = 4;
/// The oldest version that is still read.
pub const OLDEST_VERSION: u32 = 2;
/// The value of the byte order field, as a machine of the writer's byte order reads it.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Bytes of a page, on every machine: the granularity of zero detection and of runs.
pub const PAGE: usize = 4096;
/// Most bytes that one chunk may hold once decompressed.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Most sections that an image may have.
pub const MAX_SECTIONS: u32 = 4096;
/// [`RunRecord::space`] of bytes of a carried chunk that belong to no memory any more.
pub const NOWHERE: u32 = u32::MAX;
/// Most earlier images that one image may have chunks in.
pub const MAX_ORIGINS: usize = 64;
/// Most images of its own epoch that one may have chunks in.
pub const MAX_SIBLINGS: usize = 1024;
/// Most devices whose memory one image may have.
pub const MAX_DEVICES: usize = 1024;
/// Most bytes that a table may have.
pub const MAX_SECTION_BYTES: u64 = 1 << 30;
/// Most bytes that facts and inventory may have, each: readers hold them in memory.
pub const MAX_STATE_BYTES: u64 = 64 << 20;
/// Most bytes that all blobs together may have: readers hold these in memory, too. A blob may be a standard input that was read ahead.
pub const MAX_BLOB_BYTES: u64 = 320 << 20;

/// The first bytes of the file.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub byte_order: u32,
    pub section_count: u32,
    pub reserved: u32,
    pub table_offset: u64,
    pub table_checksum: u64,
    pub file_bytes: u64,
    pub reserved2: u64,
    /// The checksum of the 56 bytes before it.
    pub checksum: u64,
}

/// The last bytes of the file.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Trailer {
    pub magic: [u8; 8],
    pub file_bytes: u64,
    pub header_checksum: u64,
}

/// The kind of a section, by what it holds.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    PageData = 1,
    Identity = 2,
    Environment = 3,
    Regions = 4,
    Threads = 5,
    Contents = 6,
    Runs = 7,
    Chunks = 8,
    Strings = 9,
    Descriptors = 10,
    Inventory = 11,
    Blob = 12,
    Origins = 13,
    PackedRuns = 14,
    Siblings = 15,
    Devices = 16,
}

impl SectionKind {
    pub const ALL: [SectionKind; 16] = [
        SectionKind::PageData,
        SectionKind::Identity,
        SectionKind::Environment,
        SectionKind::Regions,
        SectionKind::Threads,
        SectionKind::Contents,
        SectionKind::Runs,
        SectionKind::Chunks,
        SectionKind::Strings,
        SectionKind::Descriptors,
        SectionKind::Inventory,
        SectionKind::Blob,
        SectionKind::Origins,
        SectionKind::PackedRuns,
        SectionKind::Siblings,
        SectionKind::Devices,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SectionKind::PageData => "page data",
            SectionKind::Identity => "identity",
            SectionKind::Environment => "environment",
            SectionKind::Regions => "regions",
            SectionKind::Threads => "threads",
            SectionKind::Contents => "contents",
            SectionKind::Runs => "runs",
            SectionKind::Chunks => "chunks",
            SectionKind::Strings => "strings",
            SectionKind::Descriptors => "descriptors",
            SectionKind::Inventory => "inventory",
            SectionKind::Blob => "blob",
            SectionKind::Origins => "origins",
            SectionKind::PackedRuns => "packed runs",
            SectionKind::Siblings => "siblings",
            SectionKind::Devices => "devices",
        }
    }

    /// Most bytes that sections of this kind may have together.
    pub const fn most_bytes(self) -> u64 {
        match self {
            SectionKind::PageData => u64::MAX,
            SectionKind::Regions
            | SectionKind::Threads
            | SectionKind::Contents
            | SectionKind::Runs
            | SectionKind::PackedRuns
            | SectionKind::Chunks
            | SectionKind::Strings => MAX_SECTION_BYTES,
            SectionKind::Identity
            | SectionKind::Environment
            | SectionKind::Descriptors
            | SectionKind::Inventory
            | SectionKind::Origins
            | SectionKind::Siblings
            | SectionKind::Devices => MAX_STATE_BYTES,
            SectionKind::Blob => MAX_BLOB_BYTES,
        }
    }

    /// Returns the oldest version whose images may have the section.
    pub const fn since(self) -> u32 {
        match self {
            SectionKind::PageData
            | SectionKind::Identity
            | SectionKind::Environment
            | SectionKind::Regions
            | SectionKind::Threads
            | SectionKind::Contents
            | SectionKind::Runs
            | SectionKind::Chunks
            | SectionKind::Strings
            | SectionKind::Descriptors
            | SectionKind::Inventory
            | SectionKind::Blob => OLDEST_VERSION,
            SectionKind::Origins => 3,
            SectionKind::PackedRuns | SectionKind::Siblings | SectionKind::Devices => 4,
        }
    }

    pub fn from_u32(value: u32) -> Option<SectionKind> {
        SectionKind::ALL
            .into_iter()
            .find(|kind| *kind as u32 == value)
    }
}

/// One entry of the section table.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct SectionRecord {
    /// A [`SectionKind`].
    pub kind: u32,
    /// The version that a blob's owner gave it; 0 for other sections.
    pub version: u32,
    pub offset: u64,
    pub bytes: u64,
    pub checksum: u64,
    /// A blob's name, filled up with zeros.
    pub name: [u8; 32],
}

/// One mapping of the upper half.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct RegionRecord {
    pub start: u64,
    pub end: u64,
    /// Offset in the backing file.
    pub file_offset: u64,
    /// Bits of [`vm_flags`].
    pub vm_flags: u64,
    /// `PROT_READ` and so on.
    pub protection: u32,
    /// A [`crate::tables::RegionKind`].
    pub kind: u32,
    /// The offset in STRINGS of the name (for a file: the path).
    pub name_offset: u32,
    pub name_bytes: u32,
    /// For a shared mapping, 1 + the index of its record in CONTENTS; 0 for others.
    pub content: u32,
    pub reserved: u32,
    pub reserved2: u64,
}

/// The traces that `madvise`, `mlock` and `mmap` flags leave on a mapping.
pub mod vm_flags {
    pub const LOCKED: u64 = 1;
    pub const DONT_DUMP: u64 = 1 << 1;
    pub const HUGE_PAGE: u64 = 1 << 2;
    pub const NO_HUGE_PAGE: u64 = 1 << 3;
    pub const DONT_FORK: u64 = 1 << 4;
    pub const WIPE_ON_FORK: u64 = 1 << 5;
    pub const MERGEABLE: u64 = 1 << 6;
    pub const GROWS_DOWN: u64 = 1 << 7;
    pub const HUGE_TLB: u64 = 1 << 8;
    pub const SEQUENTIAL: u64 = 1 << 9;
    pub const RANDOM: u64 = 1 << 10;
    pub const NO_RESERVE: u64 = 1 << 11;
    pub const DROPPABLE: u64 = 1 << 12;

    /// Each bit with the two letters that `/proc/PID/smaps` shows for it.
    pub const LETTERS: [(&str, u64); 13] = [
        ("lo", LOCKED),
        ("dd", DONT_DUMP),
        ("hg", HUGE_PAGE),
        ("nh", NO_HUGE_PAGE),
        ("dc", DONT_FORK),
        ("wf", WIPE_ON_FORK),
        ("mg", MERGEABLE),
        ("gd", GROWS_DOWN),
        ("ht", HUGE_TLB),
        ("sr", SEQUENTIAL),
        ("rr", RANDOM),
        ("nr", NO_RESERVE),
        ("dp", DROPPABLE),
    ];
}

/// One thread of the upper half. Its registers are in its signal frame, in memory.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct ThreadRecord {
    /// The thread id that the application sees.
    pub virtual_tid: u32,
    /// Bits of [`crate::tables::thread_flags`].
    pub flags: u32,
    /// Stack pointer at the stop handler's entry.
    pub stop_frame: u64,
    /// Thread pointer (FS base).
    pub thread_pointer: u64,
    /// The address set by `set_tid_address` or `CLONE_CHILD_CLEARTID`; 0 if there is none.
    pub clear_child_tid: u64,
    pub robust_list: u64,
    pub robust_list_bytes: u64,
    /// Signals that were pending for this thread alone; bit 0 is signal 1.
    pub pending_signals: u64,
    pub name: [u8; 16],
    /// Point-to-point messages that the thread had sent and received.
    pub sent: u64,
    pub received: u64,
}

/// Bytes kept besides memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct ContentRecord {
    pub bytes: u64,
    pub name_offset: u32,
    pub name_bytes: u32,
}

/// A stretch of bytes that are in the image, or in a carried chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct RunRecord {
    pub address: u64,
    /// At most [`CHUNK_BYTES`], more than 0.
    pub bytes: u32,
    pub space: u32,
}

/// The place of the bytes of some runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct ChunkRecord {
    /// The offset in the file that holds the chunk.
    pub offset: u64,
    /// The checksum of the stored bytes.
    pub checksum: u64,
    pub stored_bytes: u32,
    /// The sum of its runs' bytes.
    pub bytes: u32,
    pub first_run: u32,
    pub runs: u32,
    /// A [`crate::compression::Codec`].
    pub codec: u32,
    /// The file that holds the chunk: 0 for this file, k for the k-th of ORIGINS, and behind these of SIBLINGS.
    pub origin: u32,
}

pub const HEADER_BYTES: u64 = 64;
pub const TRAILER_BYTES: u64 = 24;

const _: () = {
    assert!(size_of::<Header>() as u64 == HEADER_BYTES);
    assert!(size_of::<Trailer>() as u64 == TRAILER_BYTES);
    assert!(size_of::<SectionRecord>() == 64);
    assert!(size_of::<RegionRecord>() == 64);
    assert!(size_of::<ThreadRecord>() == 88);
    assert!(size_of::<ContentRecord>() == 16);
    assert!(size_of::<RunRecord>() == 16);
    assert!(size_of::<ChunkRecord>() == 40);
};

#[cfg(target_endian = "big")]
compile_error!("images are little-endian: give the records zerocopy's byte-order types first");

/// Returns the checksum that is used throughout.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
