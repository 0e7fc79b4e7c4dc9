//! `run --resume` in the directory of a job that has come to its end: there is nothing to carry on, and nothing to be
//! begun again. A batch script that is put into the queue once more ends well.

use std::path::Path;

use stillpoint_protocol::job_file::JobFile;

use super::launch::Place;
use super::start::take;
use super::{Failure, Outcome, lock};

/// Tells the other ranks by job.json, which names this launch from now on, and the user.
pub fn tell(place: &Place, directory: &Path, mut job: JobFile) -> Outcome {
    let held = take(directory)?;
    let _lock = lock::take(&held)?;
    job.launch.clone_from(&place.launch);
    job.write_in(&held).map_err(|error| Failure::of(&error))?;
    let epoch = job.epoch.map_or(String::new(), |epoch| {
        format!("; --resume-anyway carries on from epoch {epoch} all the same")
    });
    Failure::failed(format!(
        "{}: the job '{}' has finished: there is nothing to carry on{epoch}",
        directory.display(),
        job.name
    ))
    .say();
    Ok(())
}
