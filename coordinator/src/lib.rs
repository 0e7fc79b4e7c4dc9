//! The job: state machine, commit, registry, server, and the `stillpoint` command.
//!
//! * [`job`] - the job as a pure state machine
//! * [`batch`] - what a batch system says of the job
//! * [`cli`] - the command, one file a subcommand
//! * [`epoch`] - committed and unfinished epochs in a checkpoint directory
//! * [`server`] - sockets and files around the job
//! * [`registry`] - which jobs this user has

#![forbid(unsafe_code)]

pub mod batch;
pub mod cli;
pub mod epoch;
pub mod job;
pub mod log;
pub mod registry;
pub mod server;
