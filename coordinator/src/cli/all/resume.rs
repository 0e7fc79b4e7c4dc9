//! `stillpoint resume`: what carries suspended jobs on.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::by_hand;
use super::helper::Speaker;
use super::words::{Deed, End, Job, Task, Word};
use super::{Asking, Everybody};
use crate::cli::units::parse_duration;
use crate::cli::{Failure, Outcome};
use crate::registry::{Entry, Registry};
use stillpoint_protocol::job_file::JobFile;

/// How long the batch system may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Say what carries suspended jobs on, or have the batch system do it
///
/// Jobs that were suspended on this host since it was started, and not carried on since. Without --run nothing is done but to say
/// the command for each.
#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    everybody: Everybody,

    /// Requeue the batch jobs of Slurm (scontrol requeue); print the command for all other jobs
    #[arg(long, env = "STILLPOINT_RUN")]
    run: bool,

    /// With --all: time limit [default: 30s]
    #[arg(long, env = "STILLPOINT_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

impl Resume {
    pub fn execute(self) -> Outcome {
        if !self.everybody.all {
            return Err(Failure::new(
                Failure::USAGE,
                "resume is for all jobs (--all); one of them is carried on by `stillpoint restart DIR` under its launcher",
            ));
        }
        let asking = Asking {
            timeout: self.timeout,
            json: self.json,
            ..Asking::default()
        };
        self.everybody.ask(Deed::Resume { run: self.run }, asking)
    }
}

/// A user's suspended jobs.
pub fn all(task: &Task, run: bool, speaker: &Speaker) {
    let suspended = Registry::of_this_user().suspended();
    for (entry, job) in suspended {
        if !super::jobs::is_meant(&entry, &task.filter) {
            continue;
        }
        let key = super::jobs::key(&entry);
        speaker.say(&Word::Found(Job {
            key: key.clone(),
            name: entry.name.clone(),
            directory: entry.directory.display().to_string(),
        }));
        let end = carry_on(&entry, &job, run);
        speaker.say(&Word::Ended { key, end });
    }
}

fn carry_on(entry: &Entry, job: &JobFile, run: bool) -> End {
    // Only Slurm's jobs have a command that starts them again whatever has become of them.
    let slurm = entry.batch.as_ref();
    let Some(batch) = slurm.filter(|batch| batch.slurm) else {
        let command = by_hand::command(entry, job);
        return match run {
            false => End::Carries {
                command,
                done: false,
            },
            true => End::Stays {
                why: format!("it is no job of Slurm: {command}"),
                status: Failure::FAILED,
                left: None,
            },
        };
    };
    let command = format!("scontrol requeue {}", batch.id);
    if !run {
        return End::Carries {
            command,
            done: false,
        };
    }
    match requeue(&batch.id) {
        Ok(()) => End::Carries {
            command,
            done: true,
        },
        Err(why) => End::Stays {
            why: format!("{command}: {why}"),
            status: Failure::FAILED,
            left: None,
        },
    }
}

fn requeue(id: &str) -> Result<(), String> {
    let mut child = Command::new("scontrol")
        .args(["requeue", id])
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
                return Err("it does not end".to_owned());
            }
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.to_string()),
        }
    }
}
