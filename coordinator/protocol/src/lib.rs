//! What agents, the coordinator and the command say to each other, and how they know each other.
//!
//! * [`agent`] - messages between a rank's agent and the coordinator
//! * [`command`] - messages between the `stillpoint` command and the coordinator
//! * [`tier`] - messages about storage tiers
//! * [`peer`] - blocks of images, from agent to agent
//! * [`codec`] - how a message becomes bytes; the only place that knows the encoding
//! * [`handshake`] - version negotiation and authentication, before the first message
//! * [`greeting`] - the handshake on a blocking connection
//! * [`sealed`] - how bytes go over a connection: encrypted, authenticated, numbered
//! * [`client`] - a blocking connection, for one plain thread
//! * [`launch`] - what `stillpoint run` and `restart` tell the lower half, in one environment variable
//! * [`job_file`] - DIR/job.json: where the coordinator is, and how the job ended
//!
//! No runtime and no threads here: the lower half of every rank links this crate.

#![forbid(unsafe_code)]

pub mod absent;
pub mod agent;
pub mod client;
pub mod codec;
pub mod command;
pub mod greeting;
pub mod handshake;
pub mod job_file;
pub mod key;
pub mod launch;
pub mod peer;
pub mod sealed;
pub mod tier;

pub use client::{Connection, Received, Receiver, Sender};
pub use key::Key;
