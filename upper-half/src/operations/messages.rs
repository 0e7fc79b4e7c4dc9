//! Messages that were pulled in before the application asked for them.

pub mod drain;
pub mod message;
pub mod points;
pub mod queue;
pub mod taken;
