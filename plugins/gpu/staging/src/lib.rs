//! Carries out what `stillpoint_gpu_plan` has planned: copies device memory of ranks to where there is room, gives it back, and drains it.
//!
//! 1. [`stage`]: room is reserved everywhere, then all ways copy at once, each in as many streams as the model says. The ranks stand still.
//! 2. [`fill_back`]: what is staged is copied to where the program goes on with it.
//! 3. [`Drain`]: what is staged goes through slots of pinned host memory to a [`Sink`], in order, while the program runs.
//! 4. [`fill_from`]: after a restart, [`Bytes`] of an image are copied to where the program goes on with it.
//!
//! [`probe`] times copies over a way that nobody has measured yet.
//!
//! What copies is a [`Device`]: the driver's, or one in virtual time in the tests. Everything here is one thread that begins copies and
//! waits for them.
//!
//! Digests are xxh3 of 128 bits of every piece. A device that can hash its own memory is asked for them before anything is copied and after every
//! copy: then no copy changes a byte unseen, and it is known before the sources are let go. Otherwise they are taken when the drain reads the bytes
//! in host memory, and only what becomes of them afterwards is held against them.

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

/// Why nothing was staged, drained or filled. What had been reserved for staging has been given back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Plan(#[from] StagingError),
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error(
        "rank {rank}: {bytes} bytes at {offset} of its device memory number {number} are not what they were: a copy or the memory that held them is faulty"
    )]
    Changed {
        rank: u32,
        /// By its number in the list of sources.
        number: usize,
        offset: u64,
        bytes: u64,
    },
    #[error(
        "device memory number {number} is not the one that was staged: rank {rank} with {bytes} bytes was"
    )]
    NotTheSame {
        number: usize,
        rank: u32,
        bytes: u64,
    },
    #[error("host memory has no room for a single slot of {slot} bytes")]
    NoSlot { slot: u64 },
    #[error("{0}")]
    Sink(#[from] SinkError),
    #[error("{0}")]
    Bytes(#[from] BytesError),
}
