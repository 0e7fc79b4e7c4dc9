//! `--all`: `status`, `checkpoint`, `suspend` and `resume` for every job of this host. When root asks, it is for every user.
//!
//! The command itself opens nothing that a user could have made. It starts a helper for each user who has jobs here. The helper becomes that user before it
//! does anything else (`helper.rs`), finds the user's jobs, and reports in lines what comes of them (`messages.rs`). A user's files or coordinators cannot
//! delay the helpers of other users, and the command waits for no helper longer than `--timeout` (`supervise.rs`).

mod helper;
mod jobs;
mod messages;
mod metrics;
mod orphans;
mod other_users;
mod ranks;
mod reports;
mod resume;
mod resume_command;
mod speaker;
mod supervise;
mod users;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use stillpoint_protocol::Span;
use stillpoint_protocol::command::Requester;

use super::{CommandResult, Failure};
pub use helper::OfUser;
pub use messages::Action;
use messages::{Filter, Task};
pub use resume::Resume;
use stillpoint_coordinator::names::name_of;

/// The time limit of a request for all jobs without `--timeout`, the same as for a single job.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The time limit of a command that only looks.
const TO_LOOK: Duration = Duration::from_secs(30);

/// Which jobs are meant.
#[derive(Clone, Debug, Default, Args)]
pub struct Everybody {
    /// Every job with ranks on this host: yours, or those of all users if you are root
    #[arg(long)]
    pub all: bool,

    /// With --all: only jobs of this user, by name or number
    #[arg(
        long,
        env = "STILLPOINT_USER",
        value_name = "USER",
        requires = "all",
        value_delimiter = ','
    )]
    user: Vec<String>,

    /// With --all: only this job of the batch system, or the tasks of this array
    #[arg(
        long,
        env = "STILLPOINT_SLURM_JOB",
        value_name = "JOB",
        requires = "all",
        value_parser = slurm_job
    )]
    slurm_job: Option<String>,

    /// With --all: only jobs whose checkpoint directory is this one or below it
    #[arg(
        long,
        env = "STILLPOINT_DIR_BELOW",
        value_name = "PATH",
        requires = "all"
    )]
    dir_below: Option<PathBuf>,
}

/// Parses the name of a job of Slurm.
fn slurm_job(text: &str) -> Result<String, String> {
    let job = resume_command::SlurmId::of(text);
    job.map(|job| job.as_str().to_owned())
        .ok_or_else(|| format!("'{text}' is no job of Slurm: write 17, 17_3 or 17+1"))
}

/// The treatment of jobs that stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Left {
    /// Let them run on
    #[default]
    Leave,
    /// Stop their ranks on this host (SIGSTOP) until somebody sends SIGCONT
    Stop,
    /// Kill their ranks on this host; they can be restarted from their last epoch, if they have one
    Kill,
}

/// The options of a request.
#[derive(Clone, Debug, Default)]
pub struct Asking {
    pub timeout: Option<Duration>,
    pub waits: bool,
    pub reason: Option<String>,
    pub left: Left,
    pub json: bool,
}

impl Everybody {
    /// Does the deed for all jobs, prints the result of each, and fails if one stays.
    pub fn ask(&self, deed: Action, asking: Asking) -> CommandResult {
        let heard = self.hear(deed, &asking)?;
        reports::all(deed, &heard, asking.json)
    }

    /// Does the same, but prints only a line for each job as it ends.
    pub fn hear(&self, deed: Action, asking: &Asking) -> Result<supervise::JobResults, Failure> {
        let this = geteuid().as_raw();
        let users::Meant { users, others } = users::meant(&self.user, deed, this)?;
        // An operator cannot see a job's directory or its batch job, so these filters exclude jobs of others.
        let others = others.filter(|_| self.slurm_job.is_none() && self.dir_below.is_none());
        let below = self.dir_below.as_deref().map(std::path::absolute);
        let below = below
            .transpose()
            .map_err(|error| Failure::failed(format!("--dir-below: {error}")))?;
        let task = Task {
            deed,
            become_user: None,
            filter: Filter {
                slurm_job: self.slurm_job.clone(),
                below,
            },
            timeout: Span::from(asking.timeout.unwrap_or(match deed {
                Action::Checkpoint | Action::Suspend => TIMEOUT,
                Action::Status | Action::Resume { .. } => TO_LOOK,
            })),
            waits: asking.waits,
            asked: None,
            left: asking.left,
            private: users::private(),
        };
        let tasks = users.into_iter().map(|user| {
            let other = user != this;
            let asked = (other || asking.reason.is_some()).then(|| Requester {
                by: name_of(this),
                reason: asking.reason.clone(),
            });
            let task = Task {
                become_user: other.then(|| users::ids(user)),
                asked,
                ..task.clone()
            };
            (user, task)
        });
        let quiet = asking.json || deed == Action::Status;
        let mut heard = supervise::all(tasks.collect(), quiet);
        if let Some(others) = others {
            let asked = Some(Requester {
                by: name_of(this),
                reason: asking.reason.clone(),
            });
            let task = Task { asked, ..task };
            let came = other_users::suspended(&task, others.as_deref(), quiet);
            if let (true, Some(users)) = (came.is_empty(), &others) {
                let users: Vec<String> = users.iter().map(|user| name_of(*user)).collect();
                let text = format!(
                    "you cannot suspend jobs of {} here: they have no running job, or you are no operator of it",
                    users.join(", ")
                );
                return Err(Failure::new(Failure::NOT_ALLOWED, text));
            }
            heard.extend(came);
        }
        Ok(heard)
    }
}
