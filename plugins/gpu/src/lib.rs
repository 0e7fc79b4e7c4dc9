//! The GPUs of a node, as a checkpoint sees them: where their memory is staged, and how it is copied.
//!
//! * [`node`]: GPUs as places with room, links between them and to host memory.
//! * [`staging`]: which bytes of which rank's device memory go where.
//! * [`streams`]: in how many streams, and in slots of what size.
//! * [`record`]: how long copies took beside what had been expected, GPU by GPU and epoch by epoch.
//!
//! Pure: no I/O, no clocks, no unsafe.

#![forbid(unsafe_code)]

pub mod node;
pub mod record;
pub mod staging;
pub mod streams;

pub use node::{Back, Gpu, Host, Node, Peer, Place, Uplink, Way};
pub use record::{Copied, Record};
pub use staging::{Part, Scheduling, Source, Staging, plan};
pub use streams::Copies;
