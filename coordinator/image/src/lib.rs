//! The image of a rank, and the manifest of an epoch.
//!
//! An image holds everything that a fresh process needs to carry on as the rank that was written
//! down: memory, threads, descriptors, and the facts by which a restart is allowed or refused. This
//! crate knows the *format* only. It knows no MPI and no processes: the `stillpoint` command reads
//! images with it on machines where no MPI is installed.
//!
//! * [`format`] - the layout, drawn
//! * [`Writer`], [`Reader`] - the two ends of it
//! * [`pages`] - where a writer's bytes come from
//! * [`crew`] - the threads that do a writer's work
//! * [`verify`], [`inspect`] - read every byte; say what is inside
//! * [`Manifest`] - which images make an epoch
//! * [`delta`], [`Origin`] - what an image leaves where earlier ones have it
//! * [`index`], [`sharing`] - what it leaves where it has it already, or another rank's image of the same epoch
//! * [`blocks`] - where the parts of an image are that was staged on several tiers
//! * [`mapped_files`] - what of private mappings is left to their files
//! * [`devices`] - memory of devices
//! * [`changes`] - what was written of each region, and why so much
//! * [`fast_tier`], [`nearest`] - what lies where on a fast tier; reading from there
//!
//! Nothing that is read is trusted: every count is compared with the size of the file before memory is
//! set aside for it, every byte is covered by a checksum, and a reader of hostile bytes ends in an
//! [`ImageError`] that names file, offset and field.

#![forbid(unsafe_code)]

pub mod blocks;
pub mod changes;
mod check;
pub mod compression;
pub mod crew;
pub mod delta;
pub mod descriptors;
pub mod devices;
pub mod error;
mod estimate;
pub mod facts;
pub mod fast_tier;
pub mod features;
pub mod format;
pub mod index;
mod inspect;
pub mod manifest;
pub mod mapped_files;
pub mod nearest;
mod origins;
mod pack;
pub mod pages;
mod reader;
mod runs;
mod sections;
pub mod sharing;
pub mod store;
mod sums;
pub mod tables;
mod writer;

pub use changes::RegionBytes;
pub use compression::Compression;
pub use crew::Crew;
pub use delta::{Base, Carried};
pub use error::ImageError;
pub use estimate::estimate;
pub use facts::{Environment, Identity};
pub use index::Index;
pub use inspect::{
    Description, DeviceDescription, FileDescription, RegionDescription, Sizes, Summary, inspect,
    verify, verify_opened,
};
pub use manifest::{Manifest, RankImage};
pub use origins::{Origin, Share, Shared, Tables};
pub use pages::PageRun;
pub use reader::{Blob, Reader};
pub use sharing::Sharing;
pub use tables::{Region, Thread};
pub use writer::{Content, MOST_RUNS, Writer, Written};

/// The name of a rank's image inside an epoch's directory.
pub fn image_name(rank: u32) -> String {
    format!("rank-{rank:06}.img")
}

/// The rank that the name of an image stands for.
pub fn rank_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("rank-")?.strip_suffix(".img")?;
    let rank = digits.parse().ok()?;
    // Signs and zeros too many are read as well.
    (image_name(rank) == name).then_some(rank)
}

/// The name of a committed epoch's directory.
pub fn epoch_name(epoch: u64) -> String {
    format!("epoch-{epoch:06}")
}

/// The epoch that a directory name stands for, if it is a committed epoch's.
pub fn epoch_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("epoch-")?;
    (digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}
