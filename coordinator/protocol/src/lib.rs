//! Messages between agents, the coordinator and the command, and the authentication of each to the others.
//!
//! * [`agent`] - messages between a rank's agent and the coordinator
//! * [`command`] - messages between the `stillpoint` command and the coordinator
//! * [`tier`] - messages about storage tiers
//! * [`peer`] - blocks of images, from agent to agent
//! * [`codec`] - the encoding of messages; the only module that knows it
//! * [`handshake`] - version negotiation and authentication, before the first message
//! * [`greeting`] - the handshake on a blocking connection
//! * [`span`] - times from outside, bounded
//! * [`sealed`] - the records of a connection: encrypted, authenticated, numbered
//! * [`lasting`] - connections that end when the other side's host is silent; the only module that makes them
//! * [`client`] - a blocking connection, for one plain thread
//! * [`launch`] - the contract that `stillpoint run` and `restart` pass to the lower half, in one environment variable
//! * [`launch_start`] - the beginning of a launch, until a rank joins the job
//! * [`installed`] - the place of the running program, and the files installed with it
//! * [`job_file`] - DIR/job.json: the coordinator's address, and the end of the job
//! * [`safe_text`] - text of others, made safe for a terminal
//! * [`process`] - processes, identified across hosts and containers
//!
//! The crate uses no runtime and no threads: the lower half of every rank links it.

#![forbid(unsafe_code)]

pub mod absent;
pub mod agent;
pub mod client;
pub mod codec;
pub mod command;
pub mod greeting;
pub mod handshake;
pub mod installed;
pub mod job_file;
pub mod key;
pub mod lasting;
pub mod launch;
pub mod launch_start;
pub mod namespace;
pub mod peer;
pub mod process;
pub mod safe_text;
pub mod sealed;
pub mod span;
pub mod tier;

pub use client::{Connection, Received, Receiver, Sender};
pub use key::Key;
pub use lasting::{Silence, Terms};
pub use span::Span;
