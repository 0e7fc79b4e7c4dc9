//! The settings of a job, which do not change.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stillpoint_ids::Epoch;
use stillpoint_multilevel::placement::Rules;

use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::job_file::ChosenInterval;
use stillpoint_protocol::{Silence, Span};

use super::member::Location;
use crate::epoch::Mark;

/// The launch with its options, and the contents of the checkpoint directory.
#[derive(Clone, Debug)]
pub struct Settings {
    pub ranks: u32,
    pub launch: String,
    /// The location of the coordinator.
    pub location: Location,
    /// The checkpoint directory.
    pub directory: PathBuf,
    /// The mark in the names of its epochs' parts.
    pub mark: Mark,
    /// The compression, in the form of `--compress`.
    pub compress: String,
    /// The extent to which images may leave chunks to those of earlier epochs.
    pub incremental: Incremental,
    /// Whether equal memory is written once.
    pub dedup: bool,
    /// The limit of copies, if the application runs on while images are written.
    pub copies: Option<Copies>,
    /// Whether an epoch is written ahead of a suspend, while the application runs on.
    pub precopy: bool,
    /// The number that the next epoch gets.
    pub next_epoch: Epoch,
    /// The newest epoch that is committed already.
    pub newest_epoch: Option<Epoch>,
    /// The time between periodic checkpoints.
    pub interval: Option<Span>,
    /// The time between failures for which the interval is chosen, if it is automatic.
    pub mttf: Option<Span>,
    /// Whether an earlier coordinator of this launch has had all ranks, and told so.
    pub has_begun: bool,
    /// The reason why a suspend by signal was not carried out, noted by an earlier coordinator of this launch.
    pub not_suspended: Option<String>,
    /// The costs of epochs of the launch before this one, if its interval was automatic.
    pub costs: Option<ChosenInterval>,
    /// The time for which a host may be silent before it counts as unreachable.
    pub silence: Silence,
    /// The exit status of every rank after a suspend.
    pub suspended_status: u8,
    /// Whether to requeue a suspended job in its batch system.
    pub requeue: bool,
    /// The rules for staging images; `None`: images are written to the checkpoint directory.
    pub staging: Option<Rules>,
    /// The epoch that this launch carries on from.
    pub restarted_from: Option<Epoch>,
    /// The epoch whose blocks are gathered first.
    pub recovers: Option<Epoch>,
    /// The number of attempts before the first one of this coordinator.
    pub attempts_before: u64,
    pub patience: Patience,
}

/// The limit of memory that a rank holds for copies while it writes behind the application's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// The most bytes of memory that the application has changed meanwhile; `None`: a fair part of the free memory.
    pub most: Option<u64>,
}

/// Times that the job waits for events.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the launch to the first message of every rank.
    pub start: Duration,
    /// From a request to the moment when images are written, unless the request says otherwise.
    pub still_point: Duration,
    /// From a request without a limit of its own until a hindrance is the answer.
    pub hindrance: Duration,
    /// Until ranks report that the application runs again.
    pub release: Duration,
    /// Until ranks end after a suspend, before the command is told that they have not.
    pub end: Duration,
    /// From the end of the job's last process, if none used MPI, until the program that one of them became connects.
    pub handover: Duration,
    /// Until the other ranks come or go, after one has failed before all were there. Also until ranks that cannot be reached come back, after all others have
    /// gone.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            start: Duration::from_secs(120),
            still_point: Duration::from_secs(600),
            hindrance: Duration::from_secs(10),
            release: Duration::from_secs(60),
            end: Duration::from_secs(30),
            handover: Duration::from_secs(60),
            grace: Duration::from_secs(2),
        }
    }
}
