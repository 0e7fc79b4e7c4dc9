//! Messages about staged device memory.

use serde::{Deserialize, Serialize};

use crate::Uuid;

/// Memory of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub uuid: Uuid,
    pub bytes: u64,
}

/// The way in which device memory of a node's ranks was staged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// This rank's device memory, by destination.
    pub own_bytes: u64,
    pub peer_bytes: u64,
    pub host_bytes: u64,
    /// Seconds until the last copy of all ranks had ended, measured and predicted.
    pub seconds: f64,
    pub predicted: f64,
    /// The ways of all ranks that were staged together.
    pub ways: Vec<WayReport>,
}

/// The copies of one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WayReport {
    pub from: String,
    /// The name in the record of copies: `own`, `to_host`, or a peer's identity.
    pub to: String,
    pub bytes: u64,
    pub streams: u32,
    pub slot: u64,
    pub predicted: Option<f64>,
    pub seconds: f64,
}
