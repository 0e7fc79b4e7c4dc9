//! Carries a checkpoint out. The agent says what is due; what is done to the upper half is done here.
//!
//! * [`carrier`] - the thread that does it, and how it is stopped
//! * [`destination`] - where an image goes
//! * [`files`] - syncs the files that the application writes
//! * [`node`] - what the ranks of a node have written, so that none writes it again
//! * [`staging`] - storage tiers, one of the destinations
//! * [`stopping`] - which threads stand, which must run

pub mod carrier;
pub mod destination;
pub mod files;
pub mod node;
pub mod staging;
pub mod stopping;
