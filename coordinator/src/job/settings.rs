//! What a job is told once.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stillpoint_multilevel::placement::Rules;

use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::{Silence, Span};

use super::rank::Location;
use crate::epoch::Mark;

/// The launch and its options, and what the checkpoint directory holds.
#[derive(Clone, Debug)]
pub struct Settings {
    pub ranks: u32,
    pub launch: String,
    /// Where the coordinator is.
    pub location: Location,
    /// The checkpoint directory.
    pub directory: PathBuf,
    /// What the parts of its epochs are known by.
    pub mark: Mark,
    /// As `--compress` takes it.
    pub compress: String,
    /// Whether images have chunks in those of earlier epochs.
    pub incremental: Incremental,
    /// Whether what an epoch has already is not written again.
    pub dedup: bool,
    /// Whether the application runs on while images are written.
    pub copies: Option<Copies>,
    /// Whether a suspend is preceded by an epoch behind which the application runs on.
    pub precopy: bool,
    /// The number that the next epoch gets.
    pub next_epoch: u64,
    /// The newest epoch that is committed already.
    pub newest_epoch: Option<u64>,
    /// Time between checkpoints that nobody asks for.
    pub interval: Option<Span>,
    /// How long a host may be silent before it counts as unreachable.
    pub silence: Silence,
    /// What every rank ends with after a suspend.
    pub suspended_status: u8,
    /// Whether a suspended job is to be put into its batch system's queue again.
    pub requeue: bool,
    /// How images are staged; `None`: they are written to the checkpoint directory.
    pub staging: Option<Rules>,
    /// The epoch that this launch carries on from.
    pub restarted_from: Option<u64>,
    /// The staged epoch that is to be made whole first.
    pub recovers: Option<u64>,
    /// Attempts are numbered from here.
    pub attempts_before: u64,
    pub patience: Patience,
}

/// What a rank may hold on to while it writes behind the application's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// Bytes of memory that the application has changed meanwhile, at most; `None`: a fair part of what is free.
    pub most: Option<u64>,
}

/// How long the job waits for what ought to happen soon.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the launch to the first word of every rank.
    pub start: Duration,
    /// From a request to the moment when images are written, unless the request says otherwise.
    pub still_point: Duration,
    /// From a request that has no limit of its own to the moment when what hinders it is the answer.
    pub hindrance: Duration,
    /// For ranks to say that the application runs again.
    pub release: Duration,
    /// For ranks to end after a suspend, before the command is told that they have not.
    pub end: Duration,
    /// From the moment when the last process of the job has gone, none having used MPI, to the moment when
    /// the program that one of them became connects.
    pub handover: Duration,
    /// For the other ranks to come or to go, once one rank has failed before all were there; for those that cannot be reached to come back, once all
    /// others have gone.
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
