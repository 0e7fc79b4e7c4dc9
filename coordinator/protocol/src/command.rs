//! Messages between the `stillpoint` command and the coordinator.
//!
//! One request a connection. `Status` is answered by one [`ToCommand::Status`]; `Checkpoint` by any
//! number of [`ToCommand::Phase`] and [`ToCommand::Hindered`] and then one of `Committed`, `Refused`, `Aborted`. A command that
//! goes away before the end does not end the checkpoint.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::codec::{Decode, Encode};
use crate::plain;
use crate::span::Span;
use crate::tier::{Announced, Moved, Rates};

/// From the command.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum FromCommand {
    Status,
    /// Write an epoch, and end the job after it if `suspend`. Given up after `timeout`.
    Checkpoint {
        suspend: bool,
        timeout: Option<Span>,
        /// Whether it is tried again until then while something hinders it.
        waits: bool,
        /// Who asks, where it is not the job's own user, and why.
        asked: Option<Asked>,
    },
}

/// Who asks for something, and why: for the job's records and for its user.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Asked {
    /// A user's name.
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is kept of a reason, in characters.
const LONGEST_REASON: usize = 1000;

impl Asked {
    /// The same in one line that a terminal may be shown.
    pub fn in_one_line(self) -> Asked {
        let line = |text: String| -> String {
            let text: String = text.chars().take(LONGEST_REASON).collect();
            plain::line(&text).into_owned()
        };
        Asked {
            by: line(self.by),
            reason: self.reason.map(line).filter(|reason| !reason.is_empty()),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "by {}: {reason}", self.by),
            None => write!(f, "by {}", self.by),
        }
    }
}

/// To the command.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum ToCommand {
    Status(JobStatus),
    /// The checkpoint has come this far.
    Phase {
        epoch: u64,
        phase: String,
    },
    /// What hinders it for the moment; it is tried again.
    Hindered {
        reasons: Vec<String>,
    },
    /// The epoch is committed; with a suspend: and every rank has ended.
    Committed(Outcome),
    /// The job cannot be checkpointed now: the ranks' own reasons. The job runs on.
    Refused {
        reasons: Vec<String>,
    },
    /// The checkpoint failed or was given up. The job runs on unless the reason says otherwise. `ahead`: the epoch that was committed ahead of it.
    Aborted {
        reason: String,
        ahead: Option<u64>,
    },
}

/// A committed epoch, for people.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Outcome {
    pub epoch: u64,
    pub directory: String,
    /// Bytes of memory in the images, before compression.
    pub bytes: u64,
    /// Bytes on disk.
    pub stored_bytes: u64,
    /// Phase and seconds, in order.
    pub phases: Vec<(String, f64)>,
    /// Seconds that the application stood still, on the rank that stood longest.
    pub stopped: f64,
    pub suspended: bool,
    /// The epoch that was written ahead of it.
    pub ahead: Option<Ahead>,
    /// How it was staged, where the job has tiers.
    pub staging: Option<Staging>,
}

/// An epoch that was written ahead of a suspend, while the application ran.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Ahead {
    pub epoch: u64,
    pub seconds: f64,
}

/// How an epoch was staged.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Staging {
    /// From the order to write to the moment when every block was on some tier, in seconds; and what the plan said.
    pub blocking: f64,
    pub predicted: f64,
    pub moved: Moved,
}

/// A rank's tier.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TierStatus {
    pub announced: Announced,
    pub rates: Rates,
}

/// What the coordinator knows about the job.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct JobStatus {
    pub ranks: Vec<RankStatus>,
    /// The phase of the checkpoint under way, if one is.
    pub phase: Option<String>,
    /// What a request waits for, if something hinders it: the ranks' own reasons.
    pub waits_for: Vec<String>,
    /// The newest committed epoch.
    pub epoch: Option<u64>,
    /// Checkpoints committed and given up in this launch.
    pub committed: u64,
    pub aborted: u64,
    /// Why the last checkpoint that was given up was.
    pub last_failure: Option<String>,
    /// The epoch that is staged and not durable yet.
    pub staged: Option<u64>,
    /// One a rank that has announced its tier.
    pub tiers: Vec<TierStatus>,
    /// Seconds since the launch.
    pub seconds: f64,
    pub tally: Box<Tally>,
}

/// What the checkpoints of a launch come to.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct Tally {
    /// Of committed epochs: bytes on disk, seconds that the application stood still, seconds by phase.
    pub stored_bytes: u64,
    pub stopped_seconds: f64,
    pub phase_seconds: BTreeMap<String, f64>,
    /// Why checkpoints were refused or given up, and how often.
    pub refusals: BTreeMap<String, u64>,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RankStatus {
    pub rank: u32,
    pub host: String,
    pub pid: u32,
    /// `starting`, `connected`, `in MPI`, `after MPI`, `ended`, `lost`.
    pub state: String,
    pub exit_status: Option<i32>,
}
