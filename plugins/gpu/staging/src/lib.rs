//! Carries out the plans of `stillpoint_gpu_plan`: copies device memory of ranks to places with room, gives it back, and drains it.
//!
//! 1. [`stage`]: reserves room everywhere, then all ways copy at once, each in as many streams as the model recommends. The ranks stand
//!    still.
//! 2. [`fill_back`]: copies staged memory to the memory that the program goes on with.
//! 3. [`Drain`]: staged memory goes through slots of pinned host memory to a [`Sink`], in order, while the program runs.
//! 4. [`fill_from`]: after a restart, copies [`Bytes`] of an image to the memory that the program goes on with.
//!
//! [`probe`] times copies over a way that has not been measured yet.
//!
//! A [`Device`] makes the copies: the driver's, or one in virtual time in the tests. All code here runs on one thread that begins copies and waits
//! for them.
//!
//! Digests are xxh3 of 128 bits of every piece. A device that can hash its own memory computes them before anything is copied and after every copy.
//! Then no copy changes a byte unseen, and this is known before the sources are let go. Otherwise they are computed when the drain reads the bytes
//! in host memory, and they only detect later changes.

#![forbid(unsafe_code)]

mod device;
mod drain;
mod fill;
mod part;
mod places;
mod probe;
mod pump;
mod stage;

pub use device::{Copy, Device, DeviceError, Digest, Spot, Stream, Ticket, digest};
pub use drain::{Drain, Sink, SinkError};
pub use fill::{BackChoice, ByWayBack, Bytes, BytesError, MeasuredBack, fill_back, fill_from};
pub use part::Stretch;
pub use probe::{Probe, probe};
pub use stage::{ByWay, Measured, Piece, Settings, Staged, stage};

use stillpoint_gpu_plan::staging::StagingError;
use stillpoint_ids::Rank;

/// An error of staging, draining or filling. Memory reserved for staging has been given back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Plan(#[from] StagingError),
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error(
        "rank {rank}: {bytes} bytes at {offset} of its device memory number {number} have changed: a copy failed, or \
         the memory that held them is faulty"
    )]
    Changed {
        rank: Rank,
        /// The source's number in the list of sources.
        number: usize,
        offset: u64,
        bytes: u64,
    },
    #[error(
        "device memory number {number} is not the staged one, which was rank {rank}'s with {bytes} bytes"
    )]
    NotTheSame {
        number: usize,
        rank: Rank,
        bytes: u64,
    },
    #[error("host memory has no room for a single slot of {slot} bytes")]
    NoSlot { slot: u64 },
    #[error("{0}")]
    Sink(#[from] SinkError),
    #[error("{0}")]
    Bytes(#[from] BytesError),
}
