//! Messages between the `stillpoint` command and the coordinator.
//!
//! A connection carries one request. `Status` is answered by one [`ToCommand::Status`]. `Checkpoint` is answered by any number of [`ToCommand::Phase`] and
//! [`ToCommand::Hindered`], and then one of `Committed`, `Refused`, `Aborted`. The checkpoint goes on even if the command disconnects before the end.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_refusals::Refusal;

use crate::codec::{Decode, Encode};
use crate::safe_text;
use crate::span::Span;
use crate::tier::{Announced, Moved, Rates};

/// From the command.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum FromCommand {
    Status,
    /// Write an epoch, and end the job after it if `suspend`. The coordinator gives up after `timeout`.
    Checkpoint {
        suspend: bool,
        timeout: Option<Span>,
        /// Whether the request is tried again until then, while something hinders it.
        waits: bool,
        /// The user who asks, if not the job's own user, and the reason.
        asked: Option<Requester>,
    },
}

/// The user who asks for something, and the reason, for the job's records and for its user.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Requester {
    /// A user's name.
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The length that a reason is cut to, in characters.
const LONGEST_REASON: usize = 1000;

impl Requester {
    /// The same as one line that is safe to print on a terminal.
    pub fn in_one_line(self) -> Requester {
        let line = |text: String| -> String {
            let text: String = text.chars().take(LONGEST_REASON).collect();
            safe_text::line(&text).into_owned()
        };
        Requester {
            by: line(self.by),
            reason: self.reason.map(line).filter(|reason| !reason.is_empty()),
        }
    }
}

impl fmt::Display for Requester {
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
    /// The phase that the checkpoint has come to.
    Phase {
        #[bincode(with_serde)]
        epoch: Epoch,
        phase: String,
    },
    /// The reasons that hinder the checkpoint for the moment; it is tried again.
    Hindered {
        #[bincode(with_serde)]
        reasons: Vec<Refusal>,
    },
    /// The epoch is committed. After a suspend, every rank has ended too.
    Committed(CommittedEpoch),
    /// The job cannot be checkpointed now: the ranks' own reasons. The job runs on.
    Refused {
        #[bincode(with_serde)]
        reasons: Vec<Refusal>,
    },
    /// The checkpoint failed or was given up. The job runs on unless the reason says otherwise. `ahead` is the epoch that was committed ahead of it.
    Aborted {
        #[bincode(with_serde)]
        reason: Refusal,
        #[bincode(with_serde)]
        ahead: Option<Epoch>,
    },
}

/// A committed epoch, for people.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct CommittedEpoch {
    #[bincode(with_serde)]
    pub epoch: Epoch,
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
    /// The staging of the epoch, if the job has tiers.
    pub staging: Option<Staging>,
}

/// An epoch that was written ahead of a suspend, while the application ran.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Ahead {
    #[bincode(with_serde)]
    pub epoch: Epoch,
    pub seconds: f64,
}

/// The staging of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Staging {
    /// Seconds from the order to write until every block was on some tier, and the plan's prediction of them.
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

/// The coordinator's knowledge of the job.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct JobStatus {
    pub ranks: Vec<RankStatus>,
    /// The phase of the checkpoint under way, if one is.
    pub phase: Option<String>,
    /// The ranks' reasons that hinder a request, if one waits.
    #[bincode(with_serde)]
    pub waits_for: Vec<Refusal>,
    /// The newest committed epoch.
    #[bincode(with_serde)]
    pub epoch: Option<Epoch>,
    /// Checkpoints committed and given up in this launch.
    pub committed: u64,
    pub aborted: u64,
    /// The reason why the last aborted checkpoint was given up.
    #[bincode(with_serde)]
    pub last_failure: Option<Refusal>,
    /// The epoch that is staged and not durable yet.
    #[bincode(with_serde)]
    pub staged: Option<Epoch>,
    /// One for each rank that has announced its tier.
    pub tiers: Vec<TierStatus>,
    /// Seconds since the launch.
    pub seconds: f64,
    pub tally: Box<Tally>,
}

/// The totals of a launch's checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct Tally {
    /// Totals of the committed epochs: bytes on disk, seconds that the application stood still, seconds by phase.
    pub stored_bytes: u64,
    pub stopped_seconds: f64,
    pub phase_seconds: BTreeMap<String, f64>,
    /// The reasons for which checkpoints were refused or given up, with their number.
    pub refusals: BTreeMap<String, u64>,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RankStatus {
    #[bincode(with_serde)]
    pub rank: Rank,
    pub host: String,
    pub pid: u32,
    /// `starting`, `connected`, `in MPI`, `after MPI`, `ended`, `lost`.
    pub state: String,
    pub exit_status: Option<i32>,
}
