//! The page at the window's start. Another process's driver reads it at its fixed address and so finds a client. This works
//! also for a client that was restarted in a new process, if the restart has carried the window.

use std::sync::atomic::AtomicU32;

use serde::{Deserialize, Serialize};

/// The first word of the page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"emu-cuda");

/// The page.
#[repr(C)]
pub struct Page {
    pub magic: u64,
    /// A [`State`].
    pub state: AtomicU32,
    /// The descriptor into which commands are written.
    pub commands: i32,
    /// The descriptor from which answers are read.
    pub answers: i32,
}

/// The state of a client, in the driver's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    Running = 0,
    Locked = 1,
    Checkpointed = 2,
    Failed = 3,
    Checkpointing = 4,
    Restoring = 5,
}

impl State {
    /// The state with a number.
    pub fn from_number(number: u32) -> Option<State> {
        [
            State::Running,
            State::Locked,
            State::Checkpointed,
            State::Failed,
            State::Checkpointing,
            State::Restoring,
        ]
        .into_iter()
        .find(|state| *state as u32 == number)
    }
}

/// A command for another process's service thread, and a number that identifies its answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Command {
    pub number: u64,
    pub order: Order,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Only answers.
    Look,
    /// Blocks new calls, and waits until submitted work is done, until a time of the monotonic clock, in nanoseconds.
    Lock { until: Option<u64> },
    /// Takes device memory away: to host memory or, with custom storage, to the calling process.
    Checkpoint { custom: bool },
    /// Gives device memory back. The folder is the caller's: a restarted client knows only where its devices were.
    Restore {
        custom: bool,
        folder: String,
        /// Uuids of devices, before and now.
        pairs: Vec<([u8; 16], [u8; 16])>,
    },
    /// The caller has copied everything.
    Complete,
    /// The caller gives up a checkpoint or restore with custom storage.
    Unlock,
}

/// The answer to a command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub number: u64,
    /// The driver's result.
    pub code: u32,
    /// With custom storage, the names of the lent memory, and how much of it lies on each device.
    pub lent: Vec<Lent>,
}

/// Memory of one device, lent to another process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Lent {
    pub token: u64,
    pub device: u32,
    pub size: u64,
}
