//! The coordinator as a process: sockets, files and time around the pure [`Job`](crate::job::Job).
//!
//! One task owns the job, and only this task changes it. Every connection has a task that reads and one that writes. Tasks send each other messages through
//! channels; the connections' outboxes are shared. All of them run on one thread, which never waits for a disk: other threads make, write and remove files.

mod actions;
mod connection;
mod coordinator;
mod door;
mod files;
mod hooks;
mod listen;
mod records;
mod requeue;
mod spec;
mod stops;
pub mod timeline;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dashmap::DashMap;
use stillpoint_ids::Rank;
use stillpoint_protocol::Terms;
use stillpoint_protocol::agent::{FromAgent, Hello};
use stillpoint_protocol::codec::{self, Encode};
use stillpoint_protocol::command::FromCommand;
use tokio::sync::{mpsc, oneshot};

use crate::job::Input;

pub use coordinator::Coordinator;
pub use listen::{Listening, addresses, listen};
pub use records::{InDirectory, Records};
pub use requeue::BatchJob;
pub use spec::{Spec, Staging};

/// Frames that wait to be written to a connection.
pub(crate) type Outbox = mpsc::UnboundedSender<Arc<[u8]>>;

/// The messages of connections and others to the job's task.
pub(crate) enum Event {
    Admit {
        hello: Hello,
        outbox: Outbox,
        /// The connection's number, if the rank is taken in.
        answer: oneshot::Sender<Option<u64>>,
    },
    Agent {
        rank: Rank,
        session: u64,
        message: FromAgent,
    },
    Disconnected {
        rank: Rank,
        session: u64,
    },
    /// The connection has ended because the rank's host was silent.
    Unreachable {
        rank: Rank,
        session: u64,
    },
    ProcessGone {
        rank: Rank,
        session: u64,
    },
    Command {
        watcher: u64,
        message: FromCommand,
    },
    /// The registry leads here, or the text says why not.
    Registered(Option<String>),
    /// Work that was done elsewhere, such as on files.
    Done(Input),
    /// A command that was told of an event has failed.
    HookFailed(String),
    /// The batch system does not take the request to start the job again yet.
    RequeueWaits(String),
    Log(String),
}

/// The state that connections share.
pub(crate) struct ServerState {
    pub terms: Terms,
    pub events: mpsc::UnboundedSender<Event>,
    pub agents: DashMap<Rank, Outbox>,
    pub commands: DashMap<u64, Outbox>,
    /// The next command's number.
    pub watchers: AtomicU64,
}

pub(crate) fn frame<M: Encode>(message: &M) -> Option<Arc<[u8]>> {
    // This fails only for a message longer than any frame, and there are none.
    codec::encode(message).ok().map(Arc::from)
}

pub(crate) fn send<M: Encode>(outbox: &Outbox, message: &M) {
    if let Some(frame) = frame(message) {
        // A connection that has just ended reports that itself.
        let _ = outbox.send(frame);
    }
}
