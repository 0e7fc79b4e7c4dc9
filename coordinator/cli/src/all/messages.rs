//! Messages between the command and its helpers, one for each user: a task, and a line of JSON for each report.
//!
//! A helper runs with its user's rights, and its user may stop it, end it, or make it say anything. So its messages are shown and counted, and have no
//! influence on other users' jobs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillpoint_ids::Epoch;
use stillpoint_protocol::Span;
use stillpoint_protocol::command::Requester;
use stillpoint_refusals::Code;

use super::Left;
use super::resume_command::ResumeCommand;

/// The action for each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Status,
    Checkpoint,
    Suspend,
    /// For suspended jobs: print the command that resumes the job, or let the batch system resume it.
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

/// The selection of a user's jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    pub slurm_job: Option<String>,
    /// An absolute path.
    pub below: Option<PathBuf>,
}

/// From the command, in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub deed: Action,
    /// The user that the helper becomes before it does anything; `None`: it keeps its own ids.
    pub become_user: Option<Ids>,
    pub filter: Filter,
    pub timeout: Span,
    /// Whether a checkpoint that is hindered waits until then.
    pub waits: bool,
    pub asked: Option<Requester>,
    pub left: Left,
    /// The user has named the registry: jobs found by other means do not count.
    pub private: bool,
}

/// From a helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum HelperMessage {
    /// A job that may run.
    Found(Job),
    /// The phase that the job has come to.
    Phase {
        key: String,
        text: String,
        /// The checkpoint cannot be given up any more.
        committing: bool,
    },
    /// It does not run, or is not meant.
    Not { key: String },
    /// The result of the job.
    Ended { key: String, end: End },
    /// The last message.
    Over,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The job's name in further messages.
    pub key: String,
    pub name: String,
    /// Empty if it is not known.
    pub directory: String,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum End {
    /// An epoch is committed.
    Epoch {
        epoch: Epoch,
        bytes: u64,
        seconds: f64,
        /// Whether the job has ended after it.
        suspended: bool,
    },
    /// It runs on, for the reason `why`. `status` is the exit status that a command for it alone would have had.
    Stays {
        why: String,
        /// The codes of the reasons, if the job or its coordinator has refused.
        #[serde(default)]
        codes: Vec<Code>,
        status: u8,
        /// The treatment of the job after that.
        left: Option<String>,
    },
    /// No coordinator of its ranks was found. They got the signal that asks for a suspend, and have ended.
    Signalled { ranks: usize },
    /// The job's status, as `stillpoint status --json` shows it.
    Shown(Box<serde_json::Value>),
    /// The way to resume it, and whether that was done.
    Carries { again: ResumeCommand, done: bool },
    /// It was to be resumed, but only its user can do that.
    ByHand(ResumeCommand),
}

impl End {
    /// Whether the request was carried out.
    pub fn is_good(&self) -> bool {
        !matches!(self, End::Stays { .. } | End::ByHand(_))
    }
}
