//! What the command and its helpers, one for each user, say to each other: a task, and a line of JSON for each thing that becomes known.
//!
//! A helper runs with its user's rights, and its user may stop it, end it, or have it say anything. What it says is shown and counted, and
//! nothing else: it has no say in what becomes of other users' jobs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillpoint_protocol::Span;
use stillpoint_protocol::command::Asked;

use super::Left;
use super::again::Again;

/// What is done with each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    Status,
    Checkpoint,
    Suspend,
    /// Of jobs that are suspended: say, or have the batch system do, what carries them on.
    Resume {
        run: bool,
    },
}

/// The ids of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
}

/// Which of a user's jobs are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    pub slurm_job: Option<String>,
    /// Absolute.
    pub below: Option<PathBuf>,
}

/// From the command, in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub deed: Deed,
    /// Whom the helper becomes before it does anything; `None`: it stays who it is.
    pub become_user: Option<Ids>,
    pub filter: Filter,
    pub timeout: Span,
    /// Whether what hinders a checkpoint is waited for until then.
    pub waits: bool,
    pub asked: Option<Asked>,
    pub left: Left,
    /// The registry is one that the user has named: what is found by other means is none of its jobs.
    pub private: bool,
}

/// From a helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Word {
    /// A job that may run.
    Found(Job),
    /// It has come so far.
    Phase {
        key: String,
        text: String,
        /// Nothing gives the checkpoint up any more.
        committing: bool,
    },
    /// It does not run, or is not meant.
    Not { key: String },
    /// What came of it.
    Ended { key: String, end: End },
    /// All is said.
    Over,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What further words name it by.
    pub key: String,
    pub name: String,
    /// Empty where it is not known.
    pub directory: String,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum End {
    /// An epoch is committed.
    Epoch {
        epoch: u64,
        bytes: u64,
        seconds: f64,
        /// And the job has ended.
        suspended: bool,
    },
    /// It runs on, and why; with the exit status that a command for it alone would have had.
    Stays {
        why: String,
        status: u8,
        /// What was done with it then.
        left: Option<String>,
    },
    /// Its ranks had no coordinator that could be found; they got the signal that means suspend, and have ended.
    Signalled { ranks: usize },
    /// As `stillpoint status --json` shows it.
    Shown(Box<serde_json::Value>),
    /// What carries it on; and whether that was done.
    Carries { again: Again, done: bool },
    /// It was to be carried on, and nobody but its user can.
    ByHand(Again),
}

impl End {
    /// Whether what was wanted has been done.
    pub fn is_good(&self) -> bool {
        !matches!(self, End::Stays { .. } | End::ByHand(_))
    }
}
