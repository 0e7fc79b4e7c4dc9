//! The job: state machine, commit, registry and server.
//!
//! * [`job`] - the job as a pure state machine
//! * [`batch`] - the batch job of a process
//! * [`door`] - the socket at which the kernel names a job's clients
//! * [`epoch`] - committed and unfinished epochs in a checkpoint directory
//! * [`server`] - sockets and files around the job
//! * [`fence`] - the coordinator's right to its directory
//! * [`names`] - names of users
//! * [`registry`] - the jobs of this user
//! * [`site`] - settings of the machine's operators

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
