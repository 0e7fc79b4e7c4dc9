//! The batch job that this process belongs to.

use crate::registry::Batch;

/// Variables in which Slurm, PBS and LSF name the job to its processes.
pub const JOBS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// The value of a variable that is set and not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The batch job that this process belongs to.
pub fn job() -> Option<Batch> {
    of(variable)
}

/// The batch job of a process with these variables.
pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Batch> {
    let number = JOBS.iter().find_map(|name| variable(name))?;
    let slurm = slurm_job(&variable);
    Some(Batch {
        slurm: slurm.is_some(),
        id: slurm.unwrap_or_else(|| number.clone()),
        number,
    })
}

/// Slurm's name of the job. A task of an array is named by the array and its place in it, since the last task has the number of the whole array.
pub fn slurm_job(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let task = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
    match task {
        Some((array, task)) => Some(format!("{array}_{task}")),
        None => variable("SLURM_JOB_ID"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_these<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let found = variables.iter().find(|(n, _)| *n == name)?;
            Some(found.1.to_owned())
        }
    }

    #[test]
    fn a_task_of_an_array_is_named_by_its_place_in_it() {
        let mut job = vec![("SLURM_JOB_ID", "19")];
        assert_eq!(slurm_job(of_these(&job)).unwrap(), "19");
        job.extend([("SLURM_ARRAY_JOB_ID", "17"), ("SLURM_ARRAY_TASK_ID", "2")]);
        assert_eq!(slurm_job(of_these(&job)).unwrap(), "17_2");
        let batch = of(of_these(&job)).unwrap();
        assert_eq!((batch.id.as_str(), batch.number.as_str()), ("17_2", "19"));
        assert_eq!(of(of_these(&[])), None);
    }
}
