//! The device of the staging engine, by the CUDA driver: contexts of all GPUs, pinned host memory, streams, and an event behind every copy.
//!
//! * [`Gpus`] - all of it
//! * [`survey`] - what the node has, its ways measured where nobody has measured them
//! * `pinned` - host memory, and who may look at it

mod gpus;
mod pinned;
mod survey;

pub use gpus::Gpus;
pub use survey::{SurveyError, survey};
