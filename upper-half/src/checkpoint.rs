//! A checkpoint and a restart as the driver thread sees them, and the library's start, which ties the floors together.

pub mod answer;
pub mod constructor;
pub mod end_object;
pub mod inventory;
pub mod park;
pub mod rebuild;
pub mod rehearsal;
pub mod standing;
