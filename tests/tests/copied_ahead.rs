//! `--precopy`: a suspend writes an epoch while the program runs, and then one with the changes since.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, job, strike};

const PATIENCE: Duration = Duration::from_secs(100);

fn on_trial(program: &str, test: impl FnOnce(&Trial) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Moving, program)?;
        Directory::new("copied-ahead")?.run(|directory| test(&Trial::new(&program, 2, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Starts the program with these options and waits until it computes.
fn started(trial: &Trial, how: &[&str]) -> Result<job::Job, Failed> {
    let mut command = job::mpirun(trial.ranks);
    command.arg(place::stillpoint()?).arg("run").args(how);
    command.arg("--dir").arg(trial.epochs_at()).arg("--");
    command.arg(trial.executable());
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    Ok(job)
}

fn suspended(trial: &Trial, job: job::Job) -> Result<Value, Failed> {
    let target = trial.epochs_at();
    let words = [Path::new("suspend"), &target, Path::new("--json")];
    let answer = command::stillpoint(trial.directory, words)?.expect(exit::DONE)?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "not 0: {}", ended.show());
    answer.json()
}

fn epochs_are(trial: &Trial, expected: &[u64]) -> Result<(), Failed> {
    let epochs = command::epochs(&trial.epochs_at());
    ensure!(epochs == expected, "there are {epochs:?}, not {expected:?}");
    Ok(())
}

fn comes_to_its_end(trial: &Trial) -> Result<(), Failed> {
    let words = [Path::new("verify"), &trial.epochs_at()];
    command::stillpoint(trial.directory, words)?.expect(exit::DONE)?;
    let job = trial.resumed()?;
    trial.go()?;
    trial.ends_well(job).map(drop)
}

/// Both epochs are of moments without messages on the wire, and between them the program has written to all of its memory.
#[test]
fn a_program_that_is_copied_ahead_goes_on_with_what_it_had_last() {
    on_trial("rewrites_everything", |trial| {
        let job = started(trial, &["--incremental", "--copy", "on", "--precopy", "on"])?;
        let said = suspended(trial, job)?;
        ensure!(said["epoch"] == 2 && said["ahead"]["epoch"] == 1, "{said}");
        let seconds = said["ahead"]["seconds"].as_f64().unwrap_or_default();
        ensure!(seconds > 0.0, "{said}");
        epochs_are(trial, &[1, 2])?;
        comes_to_its_end(trial)
    });
}

#[test]
fn a_signal_copies_ahead_where_that_is_wanted_in_any_case() {
    on_trial("ring", |trial| {
        let job = started(trial, &["--incremental", "--copy", "on", "--precopy", "on"])?;
        for rank in strike::ranks(&trial.epochs_at())? {
            strike::signal(rank, Signal::SIGUSR1)?;
        }
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "not 0: {}", ended.show());
        epochs_are(trial, &[1, 2])?;
        comes_to_its_end(trial)
    });
}

#[test]
fn without_it_there_is_one_epoch_and_it_is_refused_where_it_could_do_nothing() {
    on_trial("ring", |trial| {
        for useless in [
            ["--precopy", "on", "--copy", "on"].as_slice(),
            &["--precopy", "on", "--incremental", "--copy", "off"],
        ] {
            let mut words = vec!["run"];
            words.extend(useless);
            words.extend(["--", "true"]);
            command::stillpoint(trial.directory, words)?
                .expect_reason(exit::USAGE, "--precopy on needs --incremental")?;
        }
        // Without an epoch ahead the job ends sooner.
        let job = started(trial, &["--incremental", "--copy", "on"])?;
        let said = suspended(trial, job)?;
        ensure!(said["ahead"].is_null(), "{said}");
        epochs_are(trial, &[1])?;
        comes_to_its_end(trial)
    });
}
