//! The image of a rank, and the manifest of an epoch.
//!
//! An image holds everything that a fresh process needs to continue as the rank that was written down: memory, threads,
//! descriptors, and the facts by which a restart is allowed or refused. This crate knows the *format* only. It knows no MPI and
//! no processes: the `stillpoint` command uses it to read images on machines where no MPI is installed.
//!
//! * [`format`] - the layout, drawn
//! * [`Writer`], [`Reader`] - the two ends of it
//! * [`pages`] - the sources of a writer's bytes
//! * [`crew`] - the threads that do a writer's work
//! * [`verify`], [`inspect`] - read every byte; describe the contents
//! * [`Manifest`] - the images that make an epoch
//! * [`delta`], [`Origin`] - chunks that an image leaves in earlier ones
//! * [`index`], [`sharing`] - chunks that it shares with itself, or with another rank's image of the same epoch
//! * [`blocks`] - the places of an image's parts, if it was staged on several tiers
//! * [`mapped_files`] - pages of private mappings that are left to their files
//! * [`devices`] - memory of devices
//! * [`changes`] - how much of each region was written, and why
//! * [`fast_tier`], [`nearest`] - the layout of a fast tier; reading from there
//!
//! The reader trusts no input: it compares every count with the size of the file before it allocates memory, and checksums cover every
//! byte. Hostile bytes end in an [`ImageError`] that names file, offset and field.

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
use stillpoint_ids::{Epoch, Rank};

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
pub use origins::{Origin, Share, SiblingShare, Tables};
pub use pages::PageRun;
pub use reader::{Blob, Reader, Stream};
pub use sharing::Sharing;
pub use tables::{Content, Region, Thread};
pub use writer::{MOST_RUNS, Writer, Written};

/// Returns the name of a rank's image inside an epoch's directory.
pub fn image_name(rank: Rank) -> String {
    format!("rank-{rank:06}.img")
}

/// Returns the rank that the name of an image stands for.
pub fn rank_of(name: &str) -> Option<Rank> {
    let digits = name.strip_prefix("rank-")?.strip_suffix(".img")?;
    let rank = Rank(digits.parse().ok()?);
    // `parse` also accepts signs and leading zeros.
    (image_name(rank) == name).then_some(rank)
}

/// Returns the name of a committed epoch's directory.
pub fn epoch_name(epoch: Epoch) -> String {
    format!("epoch-{epoch:06}")
}

/// Returns the epoch that a directory name stands for, if it is a committed epoch's.
pub fn epoch_of(name: &str) -> Option<Epoch> {
    let digits = name.strip_prefix("epoch-")?;
    (digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}
