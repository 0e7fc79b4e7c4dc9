//! Carries a checkpoint out. The agent says what is due; what is done to the upper half is done here.
//!
//! * [`carrier`] - the thread that does it, and how it is stopped
//! * [`page`] - what is read and written in the gate page
//! * [`staging`] - storage tiers
//! * [`stopping`] - which threads stand, which must run

pub mod carrier;
pub mod page;
pub mod staging;
pub mod stopping;
