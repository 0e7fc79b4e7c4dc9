//! What agents, the coordinator and the command say to each other, and how they know each other.
//!
//! * [`agent`] - messages between a rank's agent and the coordinator
//! * [`command`] - messages between the `stillpoint` command and the coordinator
//! * [`tier`] - messages about storage tiers
//! * [`peer`] - blocks of images, from agent to agent
//! * [`codec`] - how a message becomes bytes; the only place that knows the encoding
//! * [`handshake`] - version negotiation and authentication, before the first message
//! * [`greeting`] - the handshake on a blocking connection
//! * [`span`] - times from outside, bounded
//! * [`sealed`] - how bytes go over a connection: encrypted, authenticated, numbered
//! * [`lasting`] - connections that end when the other side's host is silent; the only place that makes them
//! * [`client`] - a blocking connection, for one plain thread
//! * [`launch`] - what `stillpoint run` and `restart` tell the lower half, in one environment variable
//! * [`beginning`] - what a rank hears of its launch before it joins the job
//! * [`installed`] - where the running program was installed, and what with it
//! * [`job_file`] - DIR/job.json: where the coordinator is, and how the job ended
//! * [`plain`] - text of others, as a terminal may have it
//! * [`process`] - processes, as others know them
//!
//! No runtime and no threads here: the lower half of every rank links this crate.

#![forbid(unsafe_code)]

pub mod absent;
pub mod agent;
pub mod beginning;
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
pub mod namespace;
pub mod peer;
pub mod plain;
pub mod process;
pub mod sealed;
pub mod span;
pub mod tier;

pub use client::{Connection, Received, Receiver, Sender};
pub use key::Key;
pub use lasting::{Silence, Terms};
pub use span::Span;
