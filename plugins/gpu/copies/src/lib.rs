//! The staging engine's device, implemented with the CUDA driver: contexts of all GPUs, pinned host memory, streams, and an event behind
//! every copy.
//!
//! * [`Gpus`] - the device
//! * [`survey`] - the node's GPUs and ways; ways without measurements are measured
//! * [`arena`] - the file behind all pinned host memory, for processes that may see it
//! * `pinned` - host memory, and access to it

pub mod arena;
mod gpus;
mod pinned;
mod survey;

pub use gpus::{Gpus, HASHES_AT_ONCE, Hashed};
pub use survey::{SurveyError, survey};
