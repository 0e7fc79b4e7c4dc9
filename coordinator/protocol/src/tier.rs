//! Messages between agents and the coordinator about storage tiers.
//!
//! ```text
//!  agent                               coordinator
//!   Tier(Announced)          ──────▶                      once, after Welcome, where the launch has tiers
//!                            ◀──────    Peers             when every rank has announced its own
//!   Measured                 ──────▶                      after a few blocks on every way, and after every epoch
//!
//!                            ◀──────    Order::Size       in place of Write: how much is there to write?
//!   Progress::Sized          ──────▶
//!                            ◀──────    Order::Stage      who writes what where
//!   Progress::Staged         ──────▶
//!                            ◀──────    Order::Committed  release: the epoch is staged
//!                            ◀──────    Flush             copy what the fast tiers hold to the slow one
//!   Flushed                  ──────▶
//!                            ◀──────    Durable           when all have
//! ```
//!
//! Before a restart, the processes that are to become the ranks send the same messages about themselves, and fetch blocks from each other:
//!
//! ```text
//!   Tier(Announced)          ──────▶
//!                            ◀──────    Peers
//!   AtBarrier                ──────▶                      this rank has fetched all that it can
//!                            ◀──────    BarrierPassed     nobody needs this rank's fast tier any more
//!   Recovered(Gathered)      ──────▶
//!                            ◀──────    CarryOn           from which epoch
//! ```
//!
//! A *node* is a fast tier: ranks on one host that name the same directory share it. Sizes are bytes, rates bytes per
//! second.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillpoint_ids::Rank;

use crate::codec::{Decode, Encode};

/// A rank's tiers, as its launch gives them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tiers {
    /// The fast tier's directory, absolute.
    pub fast: PathBuf,
    /// The most bytes that this node may keep there.
    pub capacity: u64,
    /// The most bytes that the slow tier may hold, all epochs together.
    pub slow_capacity: Option<u64>,
    /// Limits in bytes per second: for this rank's writes to the fast tier, for those to the slow one, and for its traffic with peers in each direction.
    pub fast_limit: Option<u64>,
    pub slow_limit: Option<u64>,
    pub peer_limit: Option<u64>,
}

/// A rank's fast tier and the way to it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Announced {
    pub host: String,
    pub directory: String,
    pub capacity: u64,
    /// "host:port" at which this rank's agent accepts blocks; empty: see `problem`.
    pub address: String,
    /// The reason why the tier cannot be used.
    pub problem: Option<String>,
}

impl Announced {
    /// Whether both ranks share one node: host and directory are the same.
    pub fn same_node(&self, other: &Announced) -> bool {
        self.host == other.host && self.directory == other.directory
    }
}

/// The rates that a rank has measured on its ways; `None`: not measured, or no bytes get through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Rates {
    pub fast: Option<u64>,
    pub slow: Option<u64>,
    pub peers: Option<u64>,
}

/// The size of a rank's image, and the room on the tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sized {
    /// The approximate length of its image.
    pub bytes: u64,
    /// The free room on its node's fast tier.
    pub fast_room: u64,
    /// The free room on the slow tier.
    pub slow_room: u64,
}

/// The destinations of a rank's blocks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Assignment {
    /// The most bytes for its own node's fast tier.
    pub local: u64,
    /// (rank that serves the node, bytes).
    #[bincode(with_serde)]
    pub peers: Vec<(Rank, u64)>,
    /// Bytes that go to the slow tier at once.
    pub slow: u64,
    /// (rank that serves a node, rank that serves the node that keeps a copy of all blocks there); empty: no copies.
    #[bincode(with_serde)]
    pub partners: Vec<(Rank, Rank)>,
}

/// The destinations of the bytes that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode)]
pub struct Moved {
    pub local: u64,
    pub peers: u64,
    pub slow: u64,
    /// Second copies, on partners.
    pub copies: u64,
}

/// The sources of a rank's blocks at a restart, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Gathered {
    /// On the fast tiers of its own host.
    pub near: u64,
    /// Fetched from peers.
    pub peers: u64,
    /// On the slow tier.
    pub slow: u64,
}

impl Gathered {
    pub fn add(&mut self, other: &Gathered) {
        self.near += other.near;
        self.peers += other.peers;
        self.slow += other.slow;
    }
}

impl Moved {
    pub fn add(&mut self, other: &Moved) {
        self.local += other.local;
        self.peers += other.peers;
        self.slow += other.slow;
        self.copies += other.copies;
    }
}
