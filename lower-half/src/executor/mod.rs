//! Carries a checkpoint out. The agent says what is due; what is done to the upper half is done here.
//!
//! * [`carrier`] - the thread that does it, and how it is stopped
//! * [`page`] - what is read and written in the gate page
//! * [`refusals`] - what of the process forbids a checkpoint
//! * [`staging`] - storage tiers
//! * [`stopping`] - which threads stand, which must run

pub mod carrier;
pub mod page;
pub mod refusals;
pub mod staging;
pub mod stopping;
