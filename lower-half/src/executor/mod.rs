//! Carries out checkpoints. The agent says which step is due; the steps in the upper half are carried out here.
//!
//! * [`carrier`] - the thread that carries them out, and how it is stopped
//! * [`destination`] - the place that an image goes to
//! * [`files`] - syncs the files that the application writes
//! * [`chunk_table`] - the chunks that the ranks of a node have written, so that none writes them again
//! * [`staging`] - storage tiers, one of the destinations
//! * [`stopping`] - the threads that stand still, and those that must run

pub mod carrier;
pub mod chunk_table;
pub mod destination;
pub mod files;
pub mod staging;
pub mod stopping;
