//! A directory holds one job: two would remove each other's epochs.
//!
//! The coordinator holds a lock on DIR/.lock as long as it lives and can reach the other hosts of its job (`fence.rs`). If the file system has no locks, or
//! they do not reach other hosts, a coordinator that answers and ranks that live keep a second job out.

use std::fs::{File, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use stillpoint_directory::Directory;
use stillpoint_protocol::Received;
use stillpoint_protocol::client::CommandConnection;
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::job_file::JobFile;

use stillpoint_refusals::Code;

use super::Failure;
use super::job_directory::cannot_write;
use stillpoint_coordinator::job::Life;

const NAME: &str = ".lock";
/// The usual time to wait for a directory: a job that has just ended may hold the lock for a moment longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which a job must be seen to run without a break, so that it is not just ending.
const RUNS: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(20);
/// The time that a coordinator may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// The longest wait for a job that has lost hosts: rank 0 decides, and the other ranks wait for it for a minute.
const LONGEST: Duration = Duration::from_secs(50);
/// The time after which the user is told about the wait.
const TOLD: Duration = Duration::from_secs(3);

/// The owner of the directory, as far as this process can see.
enum Standing {
    /// No owner, or a job that has ended or gone.
    Free,
    /// A job that has all its ranks.
    Serves,
    /// A job that has lost ranks, or cannot reach them. It ends as soon as it knows that none comes back.
    Ends(Box<JobFile>),
    /// A running job on another host, without a coordinator that answers. It may be cut off.
    Silent(Box<JobFile>),
    /// A running job with a rank on this host, whose coordinator does not answer.
    Orphaned(Box<JobFile>, u32),
}

impl Standing {
    fn of(directory: &Directory) -> Standing {
        let Some(job) = running(directory).map(Box::new) else {
            return Standing::Free;
        };
        let whole = asked(&job);
        let living = job.processes.iter().find(|p| p.alive() == Some(true));
        let living = living.map(|process| process.pid);
        match (whole, living) {
            (Some(true), _) => Standing::Serves,
            (Some(false), None) => Standing::Ends(job),
            // It has not ended on this host.
            (Some(false), Some(_)) => Standing::Serves,
            (None, Some(pid)) => Standing::Orphaned(job, pid),
            (None, None) if job.coordinator.alive().is_none() => Standing::Silent(job),
            (None, None) => Standing::Free,
        }
    }

    /// The total time to wait for the directory in this state.
    fn patience(&self) -> Duration {
        match self {
            Standing::Ends(job) | Standing::Silent(job) => {
                (job.silence.time() + PATIENCE).min(LONGEST)
            }
            Standing::Serves | Standing::Free | Standing::Orphaned(..) => PATIENCE,
        }
    }
}

/// A wait for a directory.
struct Wait {
    began: Instant,
    /// The time since which every look has found the job running.
    serves: Option<Instant>,
}

impl Wait {
    fn new() -> Wait {
        Wait {
            began: Instant::now(),
            serves: None,
        }
    }

    /// Whether the wait is over, by what is seen now. A job that runs is not waited for, even early in a wait. A job that was seen to end is waited for, even
    /// if one look in between finds it running.
    fn is_over(&mut self, standing: &Standing, now: Instant) -> bool {
        if !matches!(standing, Standing::Serves) {
            self.serves = None;
            return now.duration_since(self.began) >= standing.patience();
        }
        let since = *self.serves.get_or_insert(now);
        now.duration_since(since) >= RUNS
    }
}

/// Takes the directory for a new job. The caller holds the file as long as the job lives. Returns `None` if the file system has no locks.
pub fn take(directory: &Directory) -> Result<Option<File>, Failure> {
    let file = directory
        .append(NAME)
        .map_err(|error| cannot_write(directory.path(), &error))?;
    let mut wait = Wait::new();
    let mut told = false;
    loop {
        let (free, locks) = match file.try_lock() {
            Ok(()) => (true, true),
            Err(TryLockError::Error(_)) => (true, false),
            Err(TryLockError::WouldBlock) => (false, true),
        };
        let standing = Standing::of(directory);
        match &standing {
            Standing::Free | Standing::Silent(_) if free => return Ok(locks.then_some(file)),
            // The job has released its lock.
            Standing::Ends(_) if free && locks => return Ok(Some(file)),
            Standing::Orphaned(job, pid) if free => {
                let owner = format!(
                    "'{}', its coordinator has ended, but its process {pid} is still running",
                    job.name
                );
                return Err(in_use(directory, &owner));
            }
            _ => {}
        }
        if wait.is_over(&standing, Instant::now()) {
            return Err(in_use(directory, &owner(directory)));
        }
        if let Standing::Ends(job) | Standing::Silent(job) = &standing
            && wait.began.elapsed() >= TOLD
            && !told
        {
            told = true;
            super::tell(&format!(
                "waiting for the end of '{}', which has lost hosts or ranks (its coordinator is process {} on {})",
                job.name, job.coordinator.pid, job.coordinator.host
            ));
        }
        if free && locks {
            // The owner may look at the lock in the meantime.
            let _ = file.unlock();
        }
        sleep(PAUSE);
    }
}

/// Takes the directory over from a coordinator that has died: its lock has gone with it.
pub fn take_over(directory: &Directory) -> Result<Option<File>, Failure> {
    let file = directory
        .append(NAME)
        .map_err(|error| cannot_write(directory.path(), &error))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if began.elapsed() < RUNS => sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(in_use(directory, &owner(directory))),
        }
    }
}

/// The job that is running, by the directory's job.json.
fn running(directory: &Directory) -> Option<JobFile> {
    JobFile::read(directory.path())
        .ok()
        .filter(JobFile::runs_here)
}

/// Asks a job whether it has all its ranks. Returns `None` if its coordinator does not answer.
fn asked(job: &JobFile) -> Option<bool> {
    let connection = CommandConnection::open(&job.addresses, &job.terms(), ANSWER).ok()?;
    let (sender, mut receiver) = connection.split().ok()?;
    sender.send(&FromCommand::Status).ok()?;
    match receiver.receive_within(ANSWER).ok()? {
        Received::Message(ToCommand::Status(status)) => {
            Some(!status.ranks.iter().any(|rank| Life::is_gone(&rank.state)))
        }
        // It is there, but busy.
        Received::Message(_) | Received::Nothing => Some(true),
        // It closes its connections because it ends.
        Received::Closed => Some(false),
    }
}

fn owner(directory: &Directory) -> String {
    running(directory).map_or_else(
        || "it is starting or ending".to_owned(),
        |job| {
            let silent = match asked(&job) {
                Some(_) => String::new(),
                None => format!(
                    ", which does not answer: if its host is cut off, the job ends by itself, {} after the last of \
                     its ranks there",
                    job.silence
                ),
            };
            format!(
                "'{}', process {} on {}{silent}",
                job.name, job.coordinator.pid, job.coordinator.host
            )
        },
    )
}

fn in_use(directory: &Directory, by: &str) -> Failure {
    Failure::refuse(
        Code::DirectoryInUse,
        Failure::FAILED,
        format!(
            "{}: another job runs in this directory ({by}): wait for its end or choose another directory \
         with --dir",
            directory.path().display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_that_is_seen_to_run_all_the_time_ends_a_wait_early() {
        let mut wait = Wait::new();
        let at = |ms: u64| wait.began + Duration::from_millis(ms);
        let looks = [
            (0, Standing::Free, false),
            (4_000, Standing::Free, false),
            // The job may be about to end, late in a wait as well as at its beginning.
            (4_100, Standing::Serves, false),
            (4_390, Standing::Serves, false),
            (4_395, Standing::Free, false),
            (4_450, Standing::Serves, false),
            (4_740, Standing::Serves, false),
            (4_750, Standing::Serves, true),
            (9_990, Standing::Free, false),
            (10_000, Standing::Free, true),
        ];
        let looks: Vec<_> = looks
            .map(|(ms, standing, over)| (at(ms), standing, over))
            .into();
        for (now, standing, over) in looks {
            assert_eq!(
                wait.is_over(&standing, now),
                over,
                "{:?}",
                now.duration_since(wait.began)
            );
        }
    }
}
