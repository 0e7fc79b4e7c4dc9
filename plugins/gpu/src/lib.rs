//! The GPUs of a node, as a checkpoint sees them: where their memory is staged, and how it is copied.
//!
//! * [`node`]: GPUs as places with room, links between them and to host memory.
//! * [`staging`]: the place of each byte of the ranks' device memory.
//! * [`streams`]: the number of streams, and the size of slots.
//! * [`record`]: measured and predicted times of copies, by GPU and epoch.
//!
//! Pure: no I/O, no clocks, no unsafe.

#![forbid(unsafe_code)]

pub mod node;
pub mod record;
pub mod staging;
pub mod streams;

pub use node::{Back, CopyRoute, Gpu, Host, Node, Peer, StagingPlace, Uplink};
pub use record::{Copied, Record};
pub use staging::{Scheduling, Source, StagedPart, Staging, plan};
pub use streams::Copies;
