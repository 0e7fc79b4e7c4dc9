//! What a batch system says of the job that this launch belongs to.

use std::path::Path;

use super::Failure;
use crate::server::BatchJob;

/// What batch systems call their job, as its processes see it: Slurm, PBS, LSF.
const JOBS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// `EX_TEMPFAIL` of `sysexits.h`: not done, to be tried again. No success to a batch system.
const TRY_AGAIN: u8 = 75;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What ranks end with after a suspend, where the user does not say.
pub fn suspended_status() -> u8 {
    status_of(variable)
}

fn status_of(variable: impl Fn(&str) -> Option<String>) -> u8 {
    match JOBS.iter().any(|name| variable(name).is_some()) {
        true => TRY_AGAIN,
        false => 0,
    }
}

/// The batch job that Slurm can start again. Fails where there is none, before anything is started.
pub fn to_be_requeued() -> Result<BatchJob, Failure> {
    let job = slurm_job(variable).ok_or_else(|| {
        Failure::new(
            Failure::USAGE,
            "--requeue is for jobs of Slurm, and SLURM_JOB_ID is not set: leave it out",
        )
    })?;
    let search = std::env::var_os("PATH").unwrap_or_default();
    let there = |directory: &Path| directory.join("scontrol").is_file();
    match std::env::split_paths(&search).any(|directory| there(&directory)) {
        true => Ok(job),
        false => Err(Failure::failed(
            "--requeue needs Slurm's scontrol on this node, and it is not in PATH",
        )),
    }
}

/// A task of an array is named by the array and its place in it: the number of the last one is the whole array's.
fn slurm_job(variable: impl Fn(&str) -> Option<String>) -> Option<BatchJob> {
    let task = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
    let id = match task {
        Some((array, task)) => format!("{array}_{task}"),
        None => variable("SLURM_JOB_ID")?,
    };
    Some(BatchJob { id })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let found = variables.iter().find(|(n, _)| *n == name)?;
            Some(found.1.to_owned())
        }
    }

    #[test]
    fn a_suspended_job_has_not_succeeded_where_a_batch_system_sees_it() {
        assert_eq!(status_of(of(&[])), 0);
        for name in JOBS {
            assert_eq!(status_of(of(&[(name, "17")])), 75, "{name}");
        }
    }

    #[test]
    fn a_task_of_an_array_is_requeued_alone() {
        let mut job = vec![("SLURM_JOB_ID", "19")];
        assert_eq!(slurm_job(of(&job)).unwrap().id, "19");
        job.extend([("SLURM_ARRAY_JOB_ID", "17"), ("SLURM_ARRAY_TASK_ID", "2")]);
        assert_eq!(slurm_job(of(&job)).unwrap().id, "17_2");
        assert_eq!(slurm_job(of(&[])), None);
    }
}
