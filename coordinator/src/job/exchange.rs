//! The events that the job is told, and the actions that it orders.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::Span;
use stillpoint_protocol::agent::{FromAgent, ToAgent, Written};
use stillpoint_protocol::command::{Requester, ToCommand};
use stillpoint_protocol::job_file::{ChosenInterval, JobState};
use stillpoint_refusals::Refusal;

use super::Happening;

/// An event.
#[derive(Clone, Debug)]
pub enum Input {
    /// A message of a rank that has been admitted.
    Agent { rank: Rank, message: FromAgent },
    /// A rank's connection has ended.
    Disconnected { rank: Rank },
    /// A rank's connection has ended because its host was silent.
    Unreachable { rank: Rank },
    /// A command asks for a checkpoint; reports to it carry this number.
    Checkpoint {
        watcher: u64,
        suspend: bool,
        timeout: Option<Span>,
        /// Whether it is tried again while something hinders it.
        waits: bool,
        /// The user who asks, if not the job's own user, and the reason.
        asked: Option<Requester>,
    },
    /// [`Output::Prepare`] of this attempt is done. The number is needed, since an earlier attempt at the epoch may have had a directory of the same name.
    Prepared {
        attempt: u64,
        result: Result<(), Refusal>,
    },
    /// [`Output::Commit`] of this attempt is done: the path of the epoch's directory.
    Committed {
        attempt: u64,
        result: Result<String, Refusal>,
    },
    /// [`Output::Secure`] is done: the path of the epoch's directory.
    Durable {
        epoch: Epoch,
        result: Result<String, Refusal>,
    },
    /// [`Output::Requeue`] is done: the batch system's answer, or the reason why it does not start the job again.
    Requeued { result: Result<String, String> },
    /// The process of a rank whose connection has ended is dead.
    ProcessGone { rank: Rank },
    /// The process that started the job as rank 0 has ended, and no rank is connected.
    StarterGone,
    /// Of the ranks that [`Job::awaited`] names, those whose processes have been stopped since the last look.
    Stopped { ranks: Vec<StoppedRank> },
    /// [`Job::deadline`] has come.
    Tick,
}

/// A rank whose process is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedRank {
    pub rank: Rank,
    /// The debugger that has stopped it; `None`: a signal has.
    pub tracer: Option<u32>,
}

/// An action.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Send {
        rank: Rank,
        message: ToAgent,
    },
    /// A message to every connected rank.
    Broadcast(ToAgent),
    /// A message to a command.
    Tell {
        watcher: u64,
        message: ToCommand,
    },
    /// Make the directory of an epoch that is about to be written.
    Prepare {
        attempt: u64,
        epoch: Epoch,
    },
    /// Remove that directory with its unfinished files.
    Discard {
        epoch: Epoch,
    },
    /// Commit the epoch, with one image for each rank, in order.
    Commit {
        attempt: u64,
        epoch: Epoch,
        images: Vec<Written>,
    },
    /// Give the epoch the name of a staged one; answered by [`Input::Committed`].
    Stage {
        attempt: u64,
        epoch: Epoch,
        images: Vec<Written>,
    },
    /// Commit a staged epoch that has become whole.
    Secure {
        epoch: Epoch,
    },
    /// Remove a staged epoch that cannot become whole.
    DiscardStaged {
        epoch: Epoch,
    },
    /// Release the directory whenever no change is under way, so that the job can be carried on elsewhere.
    LetGo,
    /// Take the directory again, if no other job has it, and keep it.
    TakeAgain,
    /// Let the batch system start the job again. Later actions wait until it has answered.
    Requeue,
    /// Write job.json, whose contents have changed.
    Record,
    /// A line for the log.
    Log(String),
    /// Tell commands of the user and of the site.
    Happens(Happening),
    /// The times of an epoch, in JSON.
    Trace(String),
    /// Stop: every rank has gone, and the end is recorded.
    Ended,
}

/// The fate of the job in job.json.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    pub state: JobState,
    pub reason: Option<String>,
    pub exit_status: Option<i32>,
    pub suspended_by: Option<Requester>,
    /// The reasons why a suspend that a signal asked for has not come about.
    pub not_suspended: Option<String>,
    /// The command by which the batch system has been told to start the job again.
    pub requeued: Option<String>,
    /// The interval that was chosen, if it is automatic.
    pub interval: Option<ChosenInterval>,
    pub newest_epoch: Option<Epoch>,
    pub restarted_from: Option<Epoch>,
}
