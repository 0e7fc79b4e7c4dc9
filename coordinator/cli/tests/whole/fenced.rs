//! A coordinator leaves its directory alone when another coordinator has it.

use stillpoint_protocol::command::ToCommand;
use stillpoint_protocol::job_file::{JobFile, JobState};

use crate::support::{Character, End, Job, names};

#[test]
fn a_directory_that_another_coordinator_has_taken_is_left_as_it_is() {
    let dies = Character {
        dies_at: Some("abort"),
        ..Character::default()
    };
    let job = Job::start(&[dies.clone(), dies]);
    let answer = job.checkpoint(false, None);
    assert!(matches!(answer, ToCommand::Committed(_)), "{answer:?}");
    // This happens on a file system whose locks do not hold: the job has been restarted elsewhere.
    let mut theirs = JobFile::read(job.directory.path()).unwrap();
    theirs.launch = "another".into();
    theirs.write(job.directory.path()).unwrap();
    let answer = job.checkpoint(true, None);
    let ToCommand::Aborted { reason, .. } = answer else {
        panic!("{answer:?}")
    };
    assert!(
        reason
            .details()
            .contains("another coordinator is using this directory now"),
        "{reason}"
    );
    // The job's end is not written there either.
    let (state, ends, file, directory) = job.end();
    assert_eq!((state, ends), (JobState::Failed, vec![End::Died; 2]));
    assert_eq!(file, theirs);
    let epochs = names(directory.path());
    let epochs = epochs.iter().filter(|name| name.starts_with("epoch"));
    assert_eq!(epochs.collect::<Vec<_>>(), ["epoch-000001"]);
}
