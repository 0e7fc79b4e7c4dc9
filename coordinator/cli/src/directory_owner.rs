//! The job to which a checkpoint directory belongs until it has finished. Another job must not begin there, since it would remove the epochs in time.

use stillpoint_directory::Directory;
use stillpoint_ids::Epoch;
use stillpoint_protocol::job_file::{JobFile, JobState};
use stillpoint_protocol::safe_text::word;

use stillpoint_refusals::{Code, Coded};

use super::Failure;
use stillpoint_coordinator::epoch::{EpochError, Epochs, Mark};
use stillpoint_coordinator::server::Spec;

/// Refuses a launch in the directory of another job that has epochs there and has not finished. With `--discard` it gives these epochs up instead. The caller
/// holds the directory's lock.
pub fn make_way(held: &Directory, spec: &Spec) -> Result<(), Failure> {
    let failed = |error: EpochError| Failure::refuse_of(error.code(), &error);
    let epochs = Epochs::of(held.clone(), Mark::none());
    if spec.discard {
        return epochs.give_up_all().map_err(failed);
    }
    let last = JobFile::read_in(held).ok();
    if let Some(job) = &last
        && (job.state == JobState::Finished || spec.carries(&job.job))
    {
        return Ok(());
    }
    let newest = epochs.newest_of(|id| match (id, &last) {
        (Some(id), Some(job)) => job.carries(id),
        (Some(id), None) => !spec.carries(id),
        // The epoch may be any job's. A job that carries on has chosen an epoch that can be read.
        (None, _) => spec.restarted_from.or(spec.recovers).is_none(),
    });
    match newest.map_err(failed)? {
        None => Ok(()),
        Some((epoch, _)) => Err(refusal(held, last.as_ref(), epoch)),
    }
}

fn refusal(held: &Directory, last: Option<&JobFile>, epoch: Epoch) -> Failure {
    let shown = held.path().display();
    let directory = word(&shown.to_string());
    let whose = match last {
        Some(job) => {
            let state = match job.state {
                JobState::Suspended => "is suspended",
                JobState::Failed => "has failed",
                _ => "has not finished",
            };
            format!("the job '{}', which {state}", job.name)
        }
        None => "an unknown job".to_owned(),
    };
    Failure::refuse(
        Code::DirectoryInUse,
        Failure::USAGE,
        format!(
            "{shown}: epoch {epoch} here belongs to {whose}, and a new job would remove it: continue that job (run \
             --resume, or stillpoint restart {directory}), choose another --dir, or let the new job remove its epochs \
             with run --discard"
        ),
    )
}
