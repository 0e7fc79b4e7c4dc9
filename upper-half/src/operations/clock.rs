//! The collective clocks, and the places where a thread stands still for a checkpoint.

mod cells;
pub mod collective;
pub mod inside;
pub mod kept;
pub mod log;
pub mod persistent;
pub mod points;
pub mod two_phase;
