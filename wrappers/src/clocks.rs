//! The table of collective clocks: the upper half's memory, where the agent reads how far each one is and writes how far it has to come.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use stillpoint_clock::absent::{KINDS, REMEMBERED};
use stillpoint_clock::count::Count;

/// Bytes of a clock's name.
pub const CLOCK_NAME: usize = 64;

/// One collective clock, of a communicator or of a set of ranks: what a [`ClockRoom`] begins with.
///
/// `count` is written by the application's threads only, `target` by the agent and, when the rank itself goes past it, by the stub
/// (which then tells the agent through [`Services::raise`](crate::gate::Services::raise)).
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ClockCell {
    /// Global group id (`stillpoint_clock::group`); never 0 in a cell in use, and written last when one is taken into use.
    pub ggid: AtomicU64,
    /// Collective operations that this rank has begun on the group, and how many of them bind the others.
    pub count: Count<AtomicU64>,
    /// Where every member must get to before the job is at its still point. Means something only
    /// while a checkpoint is pending.
    pub target: AtomicU64,
    /// Sum of the names of communicators that this rank has given up and that this clock counts: the same on all members at a still point,
    /// whichever threads gave them up in which order.
    pub given_up: AtomicU64,
    /// A communicator's: this process's rank there and how many members it has; of any other clock -1.
    pub rank: AtomicI32,
    pub size: AtomicI32,
}

/// What a clock remembers of the newest blocking operations that this rank has begun on it and that have a [`Kind`](stillpoint_clock::absent::Kind) other than
/// `Unknown`. That with number n is at place n - 1, of which the last byte counts. It is written before the operation is counted.
#[repr(C)]
#[derive(Debug)]
pub struct Log {
    /// For each kind, `Bcast` first: n - 1 (its lower half) where operation n was of that kind. Other numbers are of older operations, or of none.
    pub numbers: [[AtomicU32; REMEMBERED]; KINDS],
    pub counts: [AtomicI32; REMEMBERED],
    /// Ranks as the application's ABI has them.
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
