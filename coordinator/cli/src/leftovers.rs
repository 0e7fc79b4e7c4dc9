//! Data that killed jobs have left on a fast tier. The parts that no restart needs are removed.
//!
//! Every `run` and `restart` looks through its own fast tier before it starts, and so does `stillpoint clean`. A part names its job and its checkpoint
//! directory. The checkpoint directory shows whether a restart needs the part. If it does not - the directory is missing, the job runs, or may run on another
//! host - the part stays.

use std::path::{Path, PathBuf};

use stillpoint_directory::RequiredOwner;
use stillpoint_ids::Epoch;
use stillpoint_image::Manifest;
use stillpoint_image::fast_tier::JobPart;
use stillpoint_protocol::job_file::{JobFile, JobFileError, JobState};

use super::target::Target;
use stillpoint_coordinator::epoch::Epochs;

/// The treatment of a job's part of a fast tier. The blocks that an epoch needs of earlier ones are also on the slow tier, since it is built upon durable
/// epochs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No restart needs it.
    Remove,
    /// A restart needs this epoch, and no other.
    KeepOnly(Epoch),
    /// It must not be touched, for this reason.
    Keep(String),
}

/// The result for a job's part.
#[derive(Debug)]
pub struct CleanedPart {
    pub job: String,
    pub directory: PathBuf,
    pub verdict: Verdict,
    /// Bytes that were removed.
    pub removed: u64,
}

/// Removes the data that no restart needs from a fast tier. The part of `own`, a job that is about to start, stays.
pub fn clean(fast: &Path, own: Option<&str>) -> std::io::Result<Vec<CleanedPart>> {
    let parts = JobPart::all(fast)?;
    let others = parts
        .into_iter()
        .filter(|(job, _)| Some(job.as_str()) != own);
    Ok(others.map(|(job, part)| clean_part(job, &part)).collect())
}

fn clean_part(job: String, part: &JobPart) -> CleanedPart {
    let owner = part.owner();
    let (directory, verdict) = match owner {
        Ok(directory) => {
            let verdict = judge(&directory, &job);
            (directory, verdict)
        }
        Err(error) => {
            let why = format!("cannot tell which job it belongs to: {error}");
            (PathBuf::new(), Verdict::Keep(why))
        }
    };
    let before = bytes(part);
    match verdict {
        Verdict::Remove => part.keep_only(None),
        Verdict::KeepOnly(epoch) => part.keep_only(Some(epoch)),
        Verdict::Keep(_) => {}
    }
    if verdict == Verdict::Remove {
        part.leave();
    }
    CleanedPart {
        removed: before.saturating_sub(bytes(part)),
        job,
        directory,
        verdict,
    }
}

fn bytes(part: &JobPart) -> u64 {
    part.epochs()
        .into_iter()
        .map(|epoch| part.bytes(epoch))
        .sum()
}

/// Decides whether a restart from a checkpoint directory needs a job's part.
fn judge(directory: &Path, job: &str) -> Verdict {
    // A file system that is not mounted looks like a directory that was removed.
    let epochs = match Epochs::at(directory, RequiredOwner::Ours) {
        Ok(epochs) => epochs,
        Err(error) => return Verdict::Keep(error.to_string()),
    };
    match JobFile::read(directory) {
        Ok(file) if file.state == JobState::Running && file.job == job => {
            let target = Target {
                directory: directory.to_owned(),
                job: file,
            };
            if !target.all_gone() {
                return Verdict::Keep(
                    "the job is running, or may be running on other hosts".to_owned(),
                );
            }
        }
        // A job that has finished needs no restart.
        Ok(file) if file.state == JobState::Finished && file.job == job => return Verdict::Remove,
        Ok(_) | Err(JobFileError::Missing { .. }) => {}
        Err(error) => return Verdict::Keep(error.to_string()),
    }
    match epochs.newest_staged() {
        Ok(None) => Verdict::Remove,
        Ok(Some(epoch)) => match Manifest::read(&epochs.staged_path(epoch)) {
            Ok(manifest) if manifest.job == job => Verdict::KeepOnly(epoch),
            Ok(_) => Verdict::Remove,
            Err(error) => Verdict::Keep(error.to_string()),
        },
        Err(error) => Verdict::Keep(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stillpoint_protocol::Key;
    use stillpoint_protocol::job_file::{FORMAT, Process};

    const JOB: &str = "4f0c";

    /// A fast tier with epochs 4 and 5 of a job, and its checkpoint directory.
    fn left(state: JobState, coordinator: Process) -> (tempfile::TempDir, JobPart) {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("melt.d");
        std::fs::create_dir(&directory).unwrap();
        let file = JobFile {
            format: FORMAT,
            job: JOB.to_owned(),
            launch: "1".to_owned(),
            name: "melt".to_owned(),
            state,
            reason: None,
            exit_status: None,
            addresses: vec![],
            key: Key::random().unwrap(),
            silence: Default::default(),
            coordinator,
            ranks: 1,
            processes: vec![],
            mpi: "openmpi".to_owned(),
            library: "openmpi".to_owned(),
            command: vec![],
            working_directory: "/".into(),
            restarted_from: None,
            origin: None,
            recovers: None,
            suspended_by: None,
            not_suspended: None,
            requeued: None,
            interval: None,
            epoch: None,
            directory: None,
            inode: None,
            predecessors: 0,
            started: 1,
            ended: None,
            copied: false,
        };
        file.write(&directory).unwrap();
        let part = JobPart::new(&root.path().join("fast"), JOB);
        part.claim(&directory).unwrap();
        for epoch in [Epoch(4), Epoch(5)] {
            let image = part
                .make_epoch(epoch)
                .unwrap()
                .path()
                .join("rank-000000.img");
            std::fs::write(image, [1; 5000]).unwrap();
        }
        (root, part)
    }

    fn stage(root: &Path, epoch: Epoch, job: &str) {
        let staged = root
            .join("melt.d")
            .join(stillpoint_coordinator::epoch::staged_name(epoch));
        std::fs::create_dir(&staged).unwrap();
        let manifest = Manifest {
            job: job.to_owned(),
            epoch,
            ..Manifest::default()
        };
        manifest.write(&staged).unwrap();
    }

    fn gone() -> Process {
        Process {
            start_time: 1,
            ..Process::this()
        }
    }

    fn cleaned(root: &Path, own: Option<&str>) -> Vec<CleanedPart> {
        clean(&root.join("fast"), own).unwrap()
    }

    #[test]
    fn what_a_killed_job_has_left_goes_when_all_its_epochs_are_durable() {
        let (root, part) = left(JobState::Failed, gone());
        assert!(cleaned(root.path(), Some(JOB)).is_empty(), "its own");
        assert_eq!(part.epochs().len(), 2);
        let found = cleaned(root.path(), None);
        assert_eq!(found[0].verdict, Verdict::Remove);
        assert!(found[0].removed >= 10_000, "{}", found[0].removed);
        assert!(!part.path().exists());
    }

    #[test]
    fn what_a_restart_needs_stays() {
        // The job was killed with its coordinator, so job.json does not say that it failed.
        let (root, part) = left(JobState::Running, gone());
        stage(root.path(), Epoch(5), JOB);
        assert_eq!(
            cleaned(root.path(), None)[0].verdict,
            Verdict::KeepOnly(Epoch(5))
        );
        assert_eq!(part.epochs(), [Epoch(5)]);
    }

    #[test]
    fn what_a_staged_epoch_needs_is_durable() {
        let (root, part) = left(JobState::Running, gone());
        stage(root.path(), Epoch(5), JOB);
        let staged = root
            .path()
            .join("melt.d")
            .join(stillpoint_coordinator::epoch::staged_name(Epoch(5)));
        let manifest = Manifest {
            needs: vec![Epoch(4)],
            ..Manifest::read(&staged).unwrap()
        };
        manifest.write(&staged).unwrap();
        assert_eq!(
            cleaned(root.path(), None)[0].verdict,
            Verdict::KeepOnly(Epoch(5))
        );
        assert_eq!(part.epochs(), [Epoch(5)]);
        assert!(staged.exists());
    }

    #[test]
    fn what_another_job_has_staged_is_no_reason_to_keep_anything() {
        let (root, part) = left(JobState::Failed, gone());
        stage(root.path(), Epoch(5), "another");
        assert_eq!(cleaned(root.path(), None)[0].verdict, Verdict::Remove);
        assert!(!part.path().exists());
    }

    #[test]
    fn a_job_that_finished_needs_nothing() {
        let (root, part) = left(JobState::Finished, gone());
        stage(root.path(), Epoch(5), JOB);
        assert_eq!(cleaned(root.path(), None)[0].verdict, Verdict::Remove);
        assert!(!part.path().exists());
    }

    #[test]
    fn what_cannot_be_told_stays() {
        let elsewhere = Process {
            host: "another host".to_owned(),
            ..gone()
        };
        for coordinator in [Process::this(), elsewhere] {
            let (root, part) = left(JobState::Running, coordinator);
            assert!(matches!(
                cleaned(root.path(), None)[0].verdict,
                Verdict::Keep(_)
            ));
            assert_eq!(part.epochs().len(), 2);
        }
        let (root, part) = left(JobState::Failed, gone());
        std::fs::remove_dir_all(root.path().join("melt.d")).unwrap();
        assert!(matches!(
            cleaned(root.path(), None)[0].verdict,
            Verdict::Keep(_)
        ));
        assert_eq!(part.epochs().len(), 2);
    }
}
