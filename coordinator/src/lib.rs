//! The job: state machine, commit, registry and server.
//!
//! * [`job`] - the job as a pure state machine
//! * [`batch`] - what a batch system says of the job
//! * [`door`] - where the kernel says who asks a job for something
//! * [`epoch`] - committed and unfinished epochs in a checkpoint directory
//! * [`server`] - sockets and files around the job
//! * [`fence`] - whether a directory is still this coordinator's
//! * [`names`] - what users are called
//! * [`registry`] - which jobs this user has
//! * [`site`] - what the machine's operators have settled

#![forbid(unsafe_code)]

pub mod batch;
pub mod door;
pub mod epoch;
pub mod fence;
pub mod job;
pub mod log;
pub mod names;
pub mod registry;
pub mod server;
pub mod site;
