//! One job a directory: two would remove each other's epochs.
//!
//! The coordinator holds a lock on DIR/.lock as long as it lives. Where the file system has no locks, or
//! they do not reach other hosts, a coordinator that answers and ranks that live keep a second job out.

use std::fs::{File, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use stillpoint_directory::Directory;
use stillpoint_protocol::client::CommandConnection;
use stillpoint_protocol::job_file::JobFile;

use super::Failure;
use super::start::cannot_write;

const NAME: &str = ".lock";
/// A job that has just ended may hold the lock for a moment longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how long a job must be seen to run, before it counts as one that does not just end.
const RUNS: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(20);

/// Takes the directory for a new job. The file is held as long as the job lives; `None` where there
/// are no locks.
pub fn take(directory: &Directory) -> Result<Option<File>, Failure> {
    let file = directory
        .append(NAME)
        .map_err(|error| cannot_write(directory.path(), &error))?;
    let began = Instant::now();
    let locked = loop {
        match file.try_lock() {
            Ok(()) => break Some(file),
            Err(TryLockError::Error(_)) => break None,
            Err(TryLockError::WouldBlock) => {}
        }
        let limit = if running(directory).is_some_and(|job| answers(&job)) {
            RUNS
        } else {
            PATIENCE
        };
        if began.elapsed() >= limit {
            return Err(in_use(directory, &owner(directory)));
        }
        sleep(PAUSE);
    };
    let Some(job) = running(directory) else {
        return Ok(locked);
    };
    if answers(&job) {
        return Err(in_use(directory, &owner(directory)));
    }
    if let Some(rank) = job.processes.iter().find(|p| p.alive() == Some(true)) {
        let owner = format!(
            "'{}', whose coordinator has gone but whose process {} still runs",
            job.name, rank.pid
        );
        return Err(in_use(directory, &owner));
    }
    Ok(locked)
}

/// Takes the directory over from a coordinator that has died. Its lock has gone with it.
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

/// The job that the directory's job.json calls running.
fn running(directory: &Directory) -> Option<JobFile> {
    JobFile::read(directory.path())
        .ok()
        .filter(JobFile::runs_here)
}

fn answers(job: &JobFile) -> bool {
    CommandConnection::open(&job.addresses, &job.key, Duration::from_secs(2)).is_ok()
}

fn owner(directory: &Directory) -> String {
    running(directory).map_or_else(
        || "it is about to start or to end".to_owned(),
        |job| {
            format!(
                "'{}', process {} on {}",
                job.name, job.coordinator.pid, job.coordinator.host
            )
        },
    )
}

fn in_use(directory: &Directory, by: &str) -> Failure {
    Failure::failed(format!(
        "{}: another job runs in this directory ({by}): wait for its end or choose another directory \
         with --dir",
        directory.path().display()
    ))
}
