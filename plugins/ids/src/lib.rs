//! Numbers that name things, each with a type of its own, so that the compiler tells one from another.

#![forbid(unsafe_code)]

mod epoch;
mod rank;

pub use epoch::Epoch;
pub use rank::Rank;
