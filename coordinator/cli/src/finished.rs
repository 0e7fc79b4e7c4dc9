//! `run --resume` in the directory of a job that has finished: the launch does nothing. So a batch script that is queued once more ends well.

use std::path::Path;

use stillpoint_protocol::job_file::JobFile;

use stillpoint_refusals::Code;

use super::launch::LaunchPosition;
use super::start::take;
use super::{CommandResult, Failure, lock};

/// Tells the user and the other ranks: job.json names this launch from now on.
pub fn tell(place: &LaunchPosition, directory: &Path, mut job: JobFile) -> CommandResult {
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
        Failure::FAILED,
        format!(
            "{}: the job '{}' has finished: there is nothing to continue{epoch}",
            directory.display(),
            job.name
        ),
    )
    .say();
    Ok(())
}
