//! The requests for checkpoints that wait.

use std::collections::VecDeque;
use std::time::Duration;

use stillpoint_protocol::command::{Ahead, Requester, ToCommand};
use stillpoint_refusals::Refusal;

/// A request for a checkpoint.
#[derive(Debug)]
pub struct CheckpointRequest {
    pub watcher: Option<u64>,
    pub suspend: bool,
    pub timeout: Option<Duration>,
    /// The time after `since` for which it is tried again when it is refused.
    pub patience: Duration,
    pub since: Duration,
    /// The user who asks, if not the job's own user, and the reason.
    pub asked: Option<Requester>,
    /// Whether the epoch ahead of this suspend has been begun, and its result.
    pub tried_ahead: bool,
    pub ahead: Option<Ahead>,
}

impl CheckpointRequest {
    /// A request without a command that waits: a periodic checkpoint, or a suspend by a signal.
    pub fn of_the_job(suspend: bool, patience: Duration, now: Duration) -> CheckpointRequest {
        CheckpointRequest {
            watcher: None,
            suspend,
            timeout: None,
            patience,
            since: now,
            asked: None,
            tried_ahead: false,
            ahead: None,
        }
    }

    /// The answer that the request gets no epoch of its own.
    pub fn aborted(&self, reason: &Refusal) -> ToCommand {
        ToCommand::Aborted {
            reason: reason.clone(),
            ahead: self.ahead.map(|ahead| ahead.epoch),
        }
    }

    /// The time until which it is tried again after a refusal.
    pub fn tried_until(&self) -> Duration {
        self.since + self.patience
    }
}

/// The reasons that refused the last try.
#[derive(Debug)]
pub struct Hindered {
    pub reasons: Vec<Refusal>,
    pub pause: Duration,
    /// The time at which the next try begins.
    pub again: Duration,
}

/// The requests that wait, and what keeps them waiting.
#[derive(Debug, Default)]
pub struct Requests {
    pub wanted: VecDeque<CheckpointRequest>,
    /// The reasons that hinder them.
    pub hindered: Option<Hindered>,
    /// The number of tries of a suspend by signal that have failed in a row.
    pub failures: u32,
    /// The time at which the job's user was last told why a suspend by signal has not come about.
    pub told_unsuspended: Option<Duration>,
}
