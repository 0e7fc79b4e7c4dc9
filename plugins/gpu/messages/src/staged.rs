//! What is said of device memory that is staged.

use serde::{Deserialize, Serialize};

use crate::Uuid;

/// Memory of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub uuid: Uuid,
    pub bytes: u64,
}

/// How device memory of a node's ranks was staged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// This rank's device memory, by where it went.
    pub own_bytes: u64,
    pub peer_bytes: u64,
    pub host_bytes: u64,
    /// Until the last copy of all ranks had ended, and what had been expected.
    pub seconds: f64,
    pub predicted: f64,
    /// Of all ranks that were staged together.
    pub ways: Vec<WayReport>,
}

/// What one way has copied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WayReport {
    pub from: String,
    /// As the record of copies calls it: `own`, `to_host`, or a peer's identity.
    pub to: String,
    pub bytes: u64,
    pub streams: u32,
    pub slot: u64,
    pub predicted: Option<f64>,
    pub seconds: f64,
}
