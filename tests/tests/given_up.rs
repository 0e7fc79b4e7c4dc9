//! A checkpoint that is given up while images are written lets the application run on at once, and the next request is served.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, job};

/// The longest stop of the application when a checkpoint is given up after a second.
const STANDS: f64 = 1.2;

#[test]
fn a_write_is_given_up_between_two_blocks() {
    given_up("off", 0.5..STANDS);
}

/// A checkpoint that is written behind the application stops it no longer than any other.
#[test]
fn a_write_behind_the_application_is_given_up_and_leaves_nothing() {
    given_up("on", 0.0..0.5);
}

fn given_up(copy: &str, stands: Range<f64>) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "large_and_awake")?;
        Directory::new(&format!("given-up-copy-{copy}"))?.run(|directory| {
            let mut trial = Trial::new(&program, 1, directory)?;
            trial.arguments = vec!["300".to_owned()];
            runs_on(&trial, copy, stands)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// One rank has no room for its image, by the limit on its files, which a privileged job would lift.
#[test]
fn a_rank_that_cannot_write_lets_the_others_run_on() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "large_and_awake")?;
        Directory::new("no-room")?.run(|directory| {
            let mut trial = Trial::new(&program, 2, directory)?;
            trial.arguments = vec!["300".to_owned(), "0".to_owned()];
            others_run_on(&trial)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn others_run_on(trial: &Trial) -> Result<(), Failed> {
    let command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
    let mut without = as_anybody(command)?;
    without.env("STILLPOINT_COMPRESS", "zstd:9");
    without.arg(trial.executable()).args(&trial.arguments);
    let mut job = trial.launch(without)?;
    trial.ready(&mut job)?;
    let asked = ["checkpoint", "--timeout", "60"].map(Path::new);
    let target = trial.epochs_at();
    let answer = command::stillpoint(trial.directory, asked.into_iter().chain([target.as_path()]))?;
    answer.expect_reason(exit::REFUSED, "RLIMIT_FSIZE")?;
    ensure!(job.runs(), "it does not run on");
    trial.go()?;
    trial.ends_well(job)?;
    // Alone, rank 0 would have written for seconds.
    stood_still_for(trial, 0.0..STANDS)
}

/// Runs the command without root's right to lift limits.
fn as_anybody(command: Command) -> Result<Command, Failed> {
    let user = fs::metadata("/proc/self")
        .map_err(|error| error.to_string())?
        .uid();
    if user != 0 {
        return Ok(command);
    }
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]);
    without.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => without.env(name, value),
            None => without.env_remove(name),
        };
    }
    Ok(without)
}

fn stood_still_for(trial: &Trial, expected: Range<f64>) -> Result<(), Failed> {
    let gap = fs::read_to_string(trial.directory.file("gap")).map_err(|e| e.to_string())?;
    let gap: f64 = gap.trim().parse().map_err(|_| "no number".to_owned())?;
    ensure!(expected.contains(&gap), "it stood still for {gap} s");
    Ok(())
}

fn runs_on(trial: &Trial, copy: &str, stands: Range<f64>) -> Result<(), Failed> {
    let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
    // The write takes much longer than a second.
    command.env("STILLPOINT_COMPRESS", "zstd:19");
    command.env("STILLPOINT_COPY", copy);
    command.arg(trial.executable()).args(&trial.arguments);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    for _ in 0..2 {
        let answer = ask(trial)?.expect_reason(exit::FAILED, "phase write")?;
        ensure!(
            answer.took < Duration::from_secs(3),
            "the request waited for an earlier one: {}",
            answer.show()
        );
    }
    ensure!(job.runs(), "it does not run on");
    trial.go()?;
    trial.ends_well(job)?;
    let left = fs::read_dir(trial.epochs_at()).map_err(|error| error.to_string())?;
    let names = left.flatten().map(|entry| entry.file_name());
    let epochs: Vec<_> = names
        .filter(|name| name.to_string_lossy().starts_with("epoch-"))
        .collect();
    ensure!(epochs.is_empty(), "this is left: {epochs:?}");
    stood_still_for(trial, stands)
}

fn ask(trial: &Trial) -> Result<Answer, Failed> {
    let target = trial.epochs_at();
    let words = ["checkpoint", "--timeout", "1"].map(Path::new);
    command::stillpoint(trial.directory, words.into_iter().chain([target.as_path()]))
}
