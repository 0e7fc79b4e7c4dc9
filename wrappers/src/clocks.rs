//! The table of collective clocks, in the upper half's memory: the agent reads each clock's state there and writes its target.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use stillpoint_clock::absent::{KINDS, REMEMBERED};
use stillpoint_clock::count::Count;

/// Bytes of a clock's name.
pub const CLOCK_NAME: usize = 64;

/// One collective clock, of a communicator or of a set of ranks: the beginning of a [`ClockRoom`].
///
/// Only the application's threads write `count`. The agent writes `target`, and so does a stub when the rank goes past it (the stub then tells the agent
/// through [`Services::raise`](crate::gate::Services::raise)).
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ClockCell {
    /// Global group id (`stillpoint_clock::group`); never 0 in a cell in use, and written last when a cell is taken into use.
    pub ggid: AtomicU64,
    /// The number of collective operations that this rank has begun on the group, and how many of them bind the others.
    pub count: Count<AtomicU64>,
    /// The number that every member must reach before the job is at its still point. Valid only while a checkpoint is pending.
    pub target: AtomicU64,
    /// The sum of the names of communicators that this rank has given up and that this clock counts. At a still point it is the same on all members, in
    /// whichever order threads gave them up.
    pub given_up: AtomicU64,
    /// For a communicator: this process's rank there, and the number of members; -1 for any other clock.
    pub rank: AtomicI32,
    pub size: AtomicI32,
}

/// A clock's memory of the newest blocking operations that this rank has begun on it and that have a [`Kind`](stillpoint_clock::absent::Kind) other than
/// `Unknown`. Operation n is at the place that the last byte of n - 1 gives. It is written before the operation is counted.
#[repr(C)]
#[derive(Debug)]
pub struct Log {
    /// For each kind, `Bcast` first: n - 1 (its lower half) if operation n was of that kind. Other numbers belong to older operations, or to none.
    pub numbers: [[AtomicU32; REMEMBERED]; KINDS],
    pub counts: [AtomicI32; REMEMBERED],
    /// Ranks in the application's ABI.
    pub roots: [AtomicI32; REMEMBERED],
    /// Addresses of the upper half's objects.
    pub types: [AtomicU64; REMEMBERED],
}

/// A clock's place in the table at [`UpperHooks::clock_cells`](crate::gate::UpperHooks::clock_cells).
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ClockRoom {
    pub cell: ClockCell,
    pub log: Log,
}
