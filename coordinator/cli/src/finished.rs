//! `run --resume` in the directory of a job that has finished: the launch does nothing, and ends with a status of its own, since nothing was computed. A
//! batch script that may be queued once more asks for status 0 (`--finished-ok`).

use std::path::Path;

use stillpoint_protocol::job_file::JobFile;

use stillpoint_refusals::Code;

use super::job_directory::take;
use super::launch::LaunchPosition;
use super::{CommandResult, Failure, lock};

/// Tells the user and the other ranks: job.json names this launch from now on.
pub fn tell(place: &LaunchPosition, directory: &Path, mut job: JobFile, ok: bool) -> CommandResult {
    let held = take(directory)?;
    let _lock = lock::take(&held)?;
    job.launch.clone_from(&place.launch);
    job.write_in(&held)
        .map_err(|error| Failure::refuse_of(Code::UnsafeDirectory, &error))?;
    let epoch = job.epoch.map_or(String::new(), |epoch| {
        format!("; to continue from epoch {epoch}, use --resume-anyway")
    });
    Failure::refuse(
        Code::JobFinished,
        Failure::FINISHED,
        format!(
            "{}: the job '{}' has finished: there is nothing to continue, and nothing was computed now{epoch}",
            directory.display(),
            job.name
        ),
    )
    .say();
    match ok {
        true => Ok(()),
        false => Err(Failure::silent(Failure::FINISHED)),
    }
}
