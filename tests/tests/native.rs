//! A program runs the same natively and under Stillpoint: its output is compared, line by line.

use std::time::Duration;

use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure};

/// The longest time for one run.
const LONGEST: Duration = Duration::from_secs(90);

/// Returns the lines that the ranks wrote, in an order that does not depend on time.
fn lines(ended: &Ended) -> Vec<String> {
    let mut lines: Vec<String> = ended.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn says_the_same(name: &str) {
    if let Err(failed) = compared(name) {
        panic!("{failed}");
    }
}

fn compared(name: &str) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, name)?;
    let binary = program.build()?;
    for ranks in &program.ranks {
        Directory::new(name)?.run(|directory| {
            let start = |mut command: std::process::Command, run: &str| {
                command
                    .arg(&binary)
                    .env("TMPDIR", directory.path())
                    .env("SAME_RUN", run);
                Job::start(command, directory)?.end(LONGEST)
            };
            let native = start(job::mpirun(*ranks), "native")?;
            ensure!(native.status == 0, "natively: {}", native.show());
            let split = start(job::under_stillpoint(*ranks, directory.epochs())?, "split")?;
            ensure!(split.status == 0, "under Stillpoint: {}", split.show());
            let (native, split) = (lines(&native), lines(&split));
            ensure!(!native.is_empty(), "the program says nothing");
            for (native, split) in native.iter().zip(&split) {
                ensure!(
                    native == split,
                    "natively '{native}', under Stillpoint '{split}'"
                );
            }
            ensure!(
                native.len() == split.len(),
                "{} lines, {} lines",
                native.len(),
                split.len()
            );
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn collective_operations_give_what_they_give_natively() {
    says_the_same("same_collectives");
}

#[test]
fn questions_have_the_answers_that_they_have_natively() {
    says_the_same("same_queries");
}

#[test]
fn windows_and_files_are_passed_through() {
    says_the_same("same_windows_and_files");
}

#[test]
fn bad_pointers_give_the_errors_that_they_give_natively() {
    says_the_same("same_bad_pointers");
}

#[test]
fn wrong_arguments_give_the_errors_that_they_give_natively() {
    says_the_same("same_errors");
}

#[test]
fn profiling_and_tools_work_as_they_do_natively() {
    says_the_same("same_tools");
}

/// Returns a crashed rank's report without parts that differ from run to run. Callers have different addresses, so only the names of
/// the program's own functions and of those that it called are kept.
fn report(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().filter_map(|line| {
        let (process, rest) = line.split_once("] ")?;
        (process.starts_with('[') && process.contains(':')).then_some(rest)
    });
    let caller = |line: &str| {
        let (_, symbol) = line.split_once('(')?;
        let (name, _) = symbol.split_once('+')?;
        ["main", "gsignal"].contains(&name).then(|| name.to_owned())
    };
    lines
        .filter_map(|line| match line.starts_with('[') {
            true => caller(line),
            // UCX has its own report, beside Open MPI's. It is switched off.
            false if line.starts_with("Caught signal") => None,
            false => (!line.starts_with("Failing at")).then(|| line.to_owned()),
        })
        .collect()
}

/// Compares `mpirun`'s report of a rank that a signal ends.
fn ended_by(signal: i32) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, "ended_by_signal")?;
    let binary = program.build()?;
    Directory::new("ended_by_signal")?.run(|directory| {
        let end = |mut command: std::process::Command| {
            command.arg(&binary).env("ENDED_BY", signal.to_string());
            Job::start(command, directory)?.end(LONGEST)
        };
        let native = end(job::mpirun(1))?;
        let split = end(job::under_stillpoint(1, directory.epochs())?)?;
        ensure!(native.status == 128 + signal, "natively: {}", native.show());
        let (expected, found) = (report(&native.stderr), report(&split.stderr));
        ensure!(
            expected == found && expected.iter().any(|line| line == "main"),
            "natively it reports {expected:#?}, under Stillpoint {found:#?}"
        );
        ensure!(
            split.status == 128 + signal,
            "under Stillpoint: {}",
            split.show()
        );
        Ok(())
    })
}

#[test]
fn a_program_ends_by_the_signal_that_ends_it_natively() {
    for signal in [nix::libc::SIGABRT, nix::libc::SIGFPE, nix::libc::SIGSEGV] {
        if let Err(failed) = ended_by(signal) {
            panic!("signal {signal}: {failed}");
        }
    }
}

#[test]
fn signals_of_faults_that_were_sent_wait_for_the_program() {
    says_the_same("same_sent_faults");
}

#[test]
fn spawned_processes_are_passed_through() {
    says_the_same("same_spawning");
}
