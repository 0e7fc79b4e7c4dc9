//! What the job is told, and what it says is to be done.

use stillpoint_protocol::Span;
use stillpoint_protocol::agent::{FromAgent, ToAgent, Written};
use stillpoint_protocol::command::{Asked, ToCommand};
use stillpoint_protocol::job_file::JobState;

/// What has happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A message of a rank that has been admitted.
    Agent { rank: u32, message: FromAgent },
    /// A rank's connection has ended.
    Disconnected { rank: u32 },
    /// A rank's connection has ended because its host was silent.
    Unreachable { rank: u32 },
    /// A command asks for a checkpoint; it is told about it under this number.
    Checkpoint {
        watcher: u64,
        suspend: bool,
        timeout: Option<Span>,
        /// Whether it is tried again while something hinders it.
        waits: bool,
        /// Who asks, where it is not the job's own user, and why.
        asked: Option<Asked>,
    },
    /// [`Output::Prepare`] of this attempt is done. An earlier attempt at the same epoch may have had a directory of the same name.
    Prepared {
        attempt: u64,
        result: Result<(), String>,
    },
    /// [`Output::Commit`] of this attempt is done: the epoch's directory.
    Committed {
        attempt: u64,
        result: Result<String, String>,
    },
    /// [`Output::Secure`] is done: the epoch's directory.
    Durable {
        epoch: u64,
        result: Result<String, String>,
    },
    /// [`Output::Requeue`] is done: what was said, or why the batch system does not start the job again.
    Requeued { result: Result<String, String> },
    /// The process of a rank whose connection has ended is dead.
    ProcessGone { rank: u32 },
    /// The process that started the job as rank 0 has ended, and no rank is connected.
    StarterGone,
    /// [`Job::deadline`] has come.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Send {
        rank: u32,
        message: ToAgent,
    },
    /// To every rank that is connected.
    Broadcast(ToAgent),
    /// To a command.
    Tell {
        watcher: u64,
        message: ToCommand,
    },
    /// Make the directory of an epoch that is about to be written.
    Prepare {
        attempt: u64,
        epoch: u64,
    },
    /// Remove it, half-written as it is.
    Discard {
        epoch: u64,
    },
    /// Commit it: one image a rank, in order.
    Commit {
        attempt: u64,
        epoch: u64,
        images: Vec<Written>,
    },
    /// Call it staged; answered by [`Input::Committed`].
    Stage {
        attempt: u64,
        epoch: u64,
        images: Vec<Written>,
    },
    /// Commit a staged epoch that has become whole.
    Secure {
        epoch: u64,
    },
    /// Remove a staged epoch that cannot become whole.
    DiscardStaged {
        epoch: u64,
    },
    /// Let go of the directory whenever nothing is being changed there, so that the job can be carried on elsewhere.
    LetGo,
    /// Take it again, if nobody else has it, and keep it.
    TakeAgain,
    /// Have the batch system start the job again; what follows waits until it has answered.
    Requeue,
    /// What job.json says has changed.
    Record,
    /// A line for the log.
    Log(String),
    /// Every rank has gone, and the end is recorded: stop.
    Ended,
}

/// What job.json says about the job's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    pub state: JobState,
    pub reason: Option<String>,
    pub exit_status: Option<i32>,
    pub suspended_by: Option<Asked>,
    pub newest_epoch: Option<u64>,
    pub restarted_from: Option<u64>,
}
