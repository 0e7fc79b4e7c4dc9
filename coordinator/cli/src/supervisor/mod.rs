//! `stillpoint launch`: starts a launcher, and starts it again from the newest epoch when the job has lost a rank, a node or the launcher.
//!
//! It replaces no launcher: ranks are started by `mpirun` or `srun`, and the job's state is read from job.json. [`decide`] says what follows the end of a
//! launch; [`line`] and [`launches`] write the launcher's command lines, and [`running`] runs them.

mod decide;
mod launches;
mod line;
mod running;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, CommandFactory};
use nix::unistd::{Whence, lseek};
use stillpoint_coordinator::epoch::Epochs;
use stillpoint_coordinator::site::Site;
use stillpoint_directory::RequiredOwner;
use stillpoint_ids::Epoch;
use stillpoint_protocol::job_file::{JobFile, JobState};
use stillpoint_refusals::Code;

use super::launch::LaunchPosition;
use super::options::{LaunchOptions, SafeState};
use super::{Cli, CommandResult, Failure, inside};
use decide::{Ended, History, Next};
use launches::Launches;
use running::{JobEnd, Signals, job_end};

/// Start a job's launcher, and start it again from the newest epoch when a rank, a node or the launcher is lost
///
/// The launcher is written behind `--`, with or without an inner `stillpoint run`: stillpoint launch --interval 30m -- mpirun -n 4 app
///
/// An application that ends by itself is not started again: its launcher's status is the command's. A job that is suspended is not
/// started again either.
#[derive(Debug, Args)]
pub struct Supervise {
    /// The most restarts
    #[arg(
        long,
        env = "STILLPOINT_RESTARTS",
        value_name = "N",
        default_value_t = 10
    )]
    restarts: u32,

    /// Checkpoint directory, as for `run`
    #[arg(long, env = "STILLPOINT_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Begin with the newest committed epoch in the directory, if there is one
    #[arg(long, env = "STILLPOINT_RESUME")]
    resume: bool,

    /// Give up the epochs of an earlier job in the directory first
    #[arg(long, conflicts_with = "resume")]
    discard: bool,

    /// How a checkpoint brings the job to a safe state, as for `run`
    #[arg(
        long,
        env = "STILLPOINT_SAFE_STATE",
        value_name = "HOW",
        default_value = "clock"
    )]
    safe_state: SafeState,

    #[command(flatten)]
    options: LaunchOptions,

    /// The launcher with its options, and the program with its arguments
    #[arg(
        value_name = "LAUNCHER",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    words: Vec<OsString>,
}

impl Supervise {
    pub fn execute(self) -> CommandResult {
        if inside::a_rank() {
            return Err(Failure::refuse(
                Code::InsideJob,
                Failure::FAILED,
                "this process is part of a running job: launch another one from outside the job",
            ));
        }
        if LaunchPosition::here().map_or(true, |place| place.mpi.is_some() || place.size > 1) {
            return Err(Failure::refuse(
                Code::LauncherInside,
                Failure::USAGE,
                "this process is a rank of a launcher, but stillpoint launch starts the launcher itself: put it first, as in \
                 stillpoint launch -- mpirun -n 2 APP",
            ));
        }
        let site = Site::of_this_machine()
            .map_err(|error| Failure::refuse(Code::SiteSettings, Failure::FAILED, error))?;
        let line = line::taken_apart(&self.words)?;
        let launches = Launches::new(line, &given(), &site)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))?;
        runtime.block_on(supervise(&launches, self.restarts))
    }
}

/// The options that this process was given.
fn given() -> ArgMatches {
    let matches = Cli::command().get_matches();
    let launch = matches.subcommand_matches("launch");
    launch.cloned().unwrap_or_default()
}

async fn supervise(launches: &Launches, restarts: u32) -> CommandResult {
    let directory = launches.directory.as_path();
    let found = epochs(directory).last().copied();
    let mut history = History::new(restarts, found.filter(|_| !launches.discards()));
    // The epoch that the launch is to carry on from.
    let mut chosen = None;
    let mut words = launches.first();
    let mut signals = Signals::new().map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))?;
    let input = lseek(std::io::stdin(), 0, Whence::SeekCur).ok();
    loop {
        let before = JobFile::read(directory).ok().map(|job| job.launch);
        let began = Instant::now();
        let end = running::launcher(&words, &mut signals)
            .await
            .map_err(|error| {
                let launcher = words
                    .first()
                    .map(|word| word.to_string_lossy().into_owned());
                let text = format!(
                    "{}: cannot start this launcher: {error}",
                    launcher.unwrap_or_default()
                );
                Failure::refuse(Code::NoProgram, Failure::NOT_FOUND, text)
            })?;
        let lasted = began.elapsed();
        let job = job_end(directory, before.as_deref()).await;
        let mut ended = told(job, &end, lasted, directory, chosen)?;
        ended.stopped |= signals.within(Duration::ZERO).await;
        match history.next(&ended) {
            Next::Over => return ends(end.status, last_state(&ended, directory)),
            Next::GiveUp(why) => {
                super::tell(&format!("the job is given up: {why}"));
                return ends(end.status, last_state(&ended, directory));
            }
            Next::Again(again) => {
                super::tell(&again.told);
                if signals.within(again.pause).await {
                    super::tell("told to end: the job is not started again");
                    return ends(end.status, last_state(&ended, directory));
                }
                if let Some(start) = input {
                    // The restart itself skips what the program has had.
                    let _ = lseek(std::io::stdin(), start, Whence::SeekSet);
                }
                chosen = again.from;
                words = match chosen.filter(|_| again.earlier) {
                    Some(epoch) => launches.restart_from(epoch),
                    None => launches.newest(),
                };
            }
        }
    }
}

/// The facts about a launch that has ended.
fn told(
    job: JobEnd,
    end: &running::LauncherEnd,
    lasted: Duration,
    directory: &Path,
    chosen: Option<Epoch>,
) -> Result<Ended, Failure> {
    let epochs = epochs(directory);
    let launcher = match (end.status.code(), end.status.signal()) {
        (_, Some(signal)) => format!("the launcher was ended by signal {signal}"),
        (status, None) => format!("the launcher ended with status {}", status.unwrap_or(0)),
    };
    let all = |job: &JobFile| job.processes.len() == job.ranks as usize;
    let came_up = match &job {
        JobEnd::Never => false,
        JobEnd::Ended(job) | JobEnd::Silent(job) | JobEnd::Stays(job) => all(job),
    };
    let (state, exit_status, reason, from) = match job {
        JobEnd::Never => (
            None,
            None,
            format!("{launcher} before the job began"),
            chosen,
        ),
        JobEnd::Ended(job) => {
            let reason = job.reason.unwrap_or(launcher);
            (
                Some(job.state),
                job.exit_status,
                reason,
                job.restarted_from.or(job.recovers),
            )
        }
        JobEnd::Silent(job) => (
            Some(JobState::Failed),
            None,
            format!("{launcher}, and the coordinator and all ranks ended without a report"),
            job.restarted_from.or(job.recovers),
        ),
        JobEnd::Stays(job) => {
            let text = format!(
                "{launcher}, but the job '{}' still runs: end its processes, and start it again",
                job.name
            );
            return Err(Failure::refuse(Code::DirectoryInUse, Failure::FAILED, text));
        }
    };
    Ok(Ended {
        state,
        exit_status,
        reason,
        from,
        epochs,
        lasted,
        came_up,
        stopped: end.stopped,
    })
}

/// The committed epochs in the directory, oldest first, with a staged one.
fn epochs(directory: &Path) -> Vec<Epoch> {
    let Ok(there) = Epochs::at(directory, RequiredOwner::Ours) else {
        return vec![];
    };
    let mut epochs = there.committed().unwrap_or_default();
    let staged = there.newest_staged().ok().flatten();
    epochs.extend(staged.filter(|staged| epochs.last() < Some(staged)));
    epochs
}

/// The job's last state. A launch that came to no job may have found one that had finished (`--finished-ok`).
fn last_state(ended: &Ended, directory: &Path) -> Option<JobState> {
    let found = || {
        let state = JobFile::read(directory).ok()?.state;
        (state == JobState::Finished).then_some(state)
    };
    ended.state.or_else(found)
}

/// Ends as the launcher did. A shell shows signals so.
fn ends(launcher: ExitStatus, state: Option<JobState>) -> CommandResult {
    let number = launcher
        .code()
        .or_else(|| launcher.signal().map(|signal| 128 + signal));
    match exit_status(number.unwrap_or(1), state) {
        0 => Ok(()),
        status => Err(Failure::silent(status)),
    }
}

/// The command's status, by the launcher's and the job's last state. A job that has not come to its end does not pass for one that has.
fn exit_status(launcher: i32, state: Option<JobState>) -> u8 {
    let came_to_its_end = matches!(state, Some(JobState::Finished | JobState::Suspended));
    match u8::try_from(launcher) {
        Ok(0) if !came_to_its_end => Failure::FAILED,
        Ok(status) => status,
        Err(_) => Failure::FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_that_has_come_to_its_end_gives_status_0() {
        for state in [Some(JobState::Finished), Some(JobState::Suspended)] {
            assert_eq!(exit_status(0, state), 0);
            assert_eq!(exit_status(75, state), 75);
        }
        for state in [Some(JobState::Failed), Some(JobState::Running), None] {
            assert_eq!(exit_status(0, state), Failure::FAILED);
            assert_eq!(exit_status(143, state), 143);
        }
        assert_eq!(exit_status(-1, None), Failure::FAILED);
    }
}
