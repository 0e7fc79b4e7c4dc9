//! `stillpoint resume`: prints the commands that resume suspended jobs.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::messages::{Action, End, HelperMessage, Job, Task};
use super::resume_command::{ResumeCommand, SlurmId};
use super::speaker::Speaker;
use super::{Asking, Everybody};
use crate::target::Target;
use crate::units::parse_duration;
use crate::{CommandResult, Failure};
use stillpoint_coordinator::registry::{Entry, Registry};
use stillpoint_protocol::Span;
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::safe_text::word;

/// The time that the batch system may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Say what carries suspended jobs on, or have the batch system do it
///
/// Jobs that were suspended on this host since it was started, and not carried on since. Without --run nothing is done but to say
/// the command for each.
#[derive(Debug, Args)]
pub struct Resume {
    /// Checkpoint directory of one job, for which the command is told
    #[arg(hide = true, conflicts_with = "all")]
    target: Option<String>,

    #[command(flatten)]
    everybody: Everybody,

    /// Requeue the batch jobs of Slurm (scontrol requeue); print the command for all other jobs
    #[arg(long)]
    run: bool,

    /// With --all: time limit [default: 30s]
    #[arg(long, env = "STILLPOINT_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Span>,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

impl Resume {
    pub fn execute(self) -> CommandResult {
        if !self.everybody.all {
            let target = self
                .target
                .as_deref()
                .map(|target| Target::find(Some(target)));
            let command = match target.transpose()? {
                Some(Target { directory, job }) => format!(
                    "mpirun -n {} stillpoint restart {}",
                    job.ranks,
                    word(&directory.display().to_string())
                ),
                None => "stillpoint restart DIR under its launcher".to_owned(),
            };
            return Err(Failure::new(
                Failure::USAGE,
                format!(
                    "resume starts no job by itself and needs --all; to resume one job, run: {command}"
                ),
            ));
        }
        let asking = Asking {
            timeout: self.timeout.map(Span::time),
            json: self.json,
            ..Asking::default()
        };
        self.everybody.ask(Action::Resume { run: self.run }, asking)
    }
}

/// Attends to a user's suspended jobs.
pub fn all(task: &Task, run: bool, speaker: &Speaker) {
    let suspended = Registry::of_this_user().suspended();
    for (entry, job) in suspended {
        if !super::jobs::is_meant(&entry, &task.filter) {
            continue;
        }
        let key = super::jobs::key(&entry);
        speaker.say(&HelperMessage::Found(Job {
            key: key.clone(),
            name: entry.name.clone(),
            directory: entry.directory.display().to_string(),
        }));
        let end = carry_on(&entry, &job, run);
        speaker.say(&HelperMessage::Ended { key, end });
    }
}

fn carry_on(entry: &Entry, job: &JobFile, run: bool) -> End {
    // Only Slurm has a command that starts a job again in any state.
    let batch = entry.batch.as_ref().filter(|batch| batch.slurm);
    let id = batch.and_then(|batch| SlurmId::of(&batch.id));
    let again = match &id {
        Some(id) => ResumeCommand::Requeue(id.clone()),
        None => ResumeCommand::by_hand(entry, job),
    };
    match id {
        _ if !run => End::Carries { again, done: false },
        None => End::ByHand(again),
        Some(id) => requeued(&id, again),
    }
}

fn requeued(id: &SlurmId, again: ResumeCommand) -> End {
    match requeue(id) {
        Ok(()) => End::Carries { again, done: true },
        Err(why) => End::Stays {
            why: format!("{}: {why}", again.command()),
            codes: vec![],
            status: Failure::FAILED,
            left: None,
        },
    }
}

fn requeue(id: &SlurmId) -> Result<(), String> {
    let mut child = Command::new("scontrol")
        .args(["requeue", id.as_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let since = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => {
                let said = child
                    .wait_with_output()
                    .map_err(|error| error.to_string())?;
                return Err(String::from_utf8_lossy(&said.stderr).trim().to_owned());
            }
            Ok(None) if since.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it did not end in time".to_owned());
            }
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.to_string()),
        }
    }
}
