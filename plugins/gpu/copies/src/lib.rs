//! The device of the staging engine, by the CUDA driver: contexts of all GPUs, pinned host memory, streams, and an event behind every copy.
//!
//! * [`Gpus`] - all of it
//! * [`survey`] - what the node has, its ways measured where nobody has measured them
//! * [`arena`] - the file that all pinned host memory is out of, for who is shown it
//! * `pinned` - host memory, and who may look at it

pub mod arena;
mod gpus;
mod pinned;
mod survey;

pub use gpus::{Gpus, HASHES_AT_ONCE, Hashed};
pub use survey::{SurveyError, survey};
