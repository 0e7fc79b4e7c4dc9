//! Helpers of these tests.

use std::path::Path;
use std::time::Duration;

use stillpoint_tests::command::{self, Answer};
use stillpoint_tests::job::Job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, reason};

/// The longest time for a failing command.
pub const LONGEST: Duration = Duration::from_secs(30);

pub fn must(tested: Result<(), Failed>) {
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

pub fn io(error: std::io::Error) -> Failed {
    error.to_string()
}

/// Checks that a launch that fails at its start ends with `status` and gives one reason.
pub fn fails(job: Job, status: i32, words: &[&str]) -> Result<(), Failed> {
    let ended = job.end(LONGEST)?;
    ensure!(
        ended.status == status,
        "expected exit status {status}: {}",
        ended.show()
    );
    reason::one(&ended.stderr, words).map_err(|failed| format!("{failed}\n{}", ended.show()))
}

pub fn verify(trial: &Trial) -> Result<Answer, Failed> {
    let target = trial.epochs_at();
    command::stillpoint(trial.directory, [Path::new("verify"), target.as_path()])
}

/// Runs a test with a suspended job of the ring program, which the test breaks and restarts.
pub fn with_suspended(name: &str, test: impl FnOnce(&Trial, &Path) -> Result<(), Failed>) {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new(name)?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let epoch = trial.epochs_at().join("epoch-000001");
            test(&trial, &epoch)?;
            // The refused restarts have not spoilt the job.
            trial.go()?;
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    })());
}
