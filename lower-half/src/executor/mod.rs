//! Carries a checkpoint out. The agent says what is due; what is done to the upper half is done here.
//!
//! * [`carrier`] - the thread that does it, and how it is stopped
//! * [`destination`] - where an image goes
//! * [`staging`] - storage tiers, one of the destinations
//! * [`stopping`] - which threads stand, which must run

pub mod carrier;
pub mod destination;
pub mod staging;
pub mod stopping;
