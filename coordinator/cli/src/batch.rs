//! Consequences of a batch system for a launch.

use std::path::Path;

use stillpoint_refusals::Code;

use super::Failure;
use stillpoint_coordinator::batch::{JOBS, slurm_job, variable};
use stillpoint_coordinator::server::BatchJob;

/// `EX_TEMPFAIL` of `sysexits.h`: a temporary failure, try again. A batch system does not take it for success.
const TRY_AGAIN: u8 = 75;

/// The exit status of ranks after a suspend, unless the user sets one.
pub fn suspended_status() -> u8 {
    status_of(variable)
}

fn status_of(variable: impl Fn(&str) -> Option<String>) -> u8 {
    match JOBS.iter().any(|name| variable(name).is_some()) {
        true => TRY_AGAIN,
        false => 0,
    }
}

/// Returns the batch job that Slurm can start again. It fails if there is none, before anything is started.
pub fn to_be_requeued() -> Result<BatchJob, Failure> {
    let id = slurm_job(variable).ok_or_else(|| {
        Failure::refuse(
            Code::WrongOptions,
            Failure::USAGE,
            "--requeue needs a Slurm job, but SLURM_JOB_ID is not set: leave the option out",
        )
    })?;
    let search = std::env::var_os("PATH").unwrap_or_default();
    let there = |directory: &Path| directory.join("scontrol").is_file();
    match std::env::split_paths(&search).any(|directory| there(&directory)) {
        true => Ok(BatchJob { id }),
        false => Err(Failure::refuse(
            Code::NotSetUp,
            Failure::FAILED,
            "--requeue needs Slurm's scontrol, but it is not in PATH on this node: add its directory, or leave the \
             option out",
        )),
    }
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
}
