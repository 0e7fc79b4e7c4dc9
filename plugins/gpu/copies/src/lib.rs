//! The device of the staging engine, by the CUDA driver: contexts of all GPUs, pinned host memory, streams, and an event behind every copy.
//!
//! * [`Gpus`] - all of it
//! * `pinned` - host memory, and who may look at it

mod gpus;
mod pinned;

pub use gpus::Gpus;
