//! `stillpoint launch`: a job that loses ranks, its launcher or its coordinator comes to its end by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, strike};

const PATIENCE: Duration = Duration::from_secs(100);

fn on_trial(test: impl FnOnce(&Trial, &Directory) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("supervised")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            test(&trial, directory)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// `stillpoint launch OPTIONS -- mpirun -n 2`, with the settings of every job.
fn launch(target: &Path, options: &[&str]) -> Result<Command, Failed> {
    let launcher = job::mpirun(2);
    let mut command = Command::new(place::stillpoint()?);
    command.arg("launch").arg("--dir").arg(target).args(options);
    command.arg("--").arg(launcher.get_program());
    command.args(launcher.get_args());
    for (name, value) in launcher.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(command)
}

fn file(target: &Path) -> Value {
    strike::job_file(target).unwrap_or_default()
}

/// Waits for another launch than this one, whose ranks all run.
fn until_launched(job: &mut Job, target: &Path, before: &Value) -> Result<Value, Failed> {
    let ready = |file: &Value| {
        let ranks = file["processes"].as_array().map_or(0, Vec::len);
        file["launch"] != *before && file["state"] == "running" && ranks == 2
    };
    job.until("launched again", PATIENCE, |_| ready(&file(target)))?;
    Ok(file(target))
}

fn checkpoint(directory: &Directory, target: &Path) -> Result<(), Failed> {
    command::checkpoint(directory, target)?.expect(exit::DONE)?;
    Ok(())
}

/// The launcher's process: a child of the supervisor.
fn launcher(job: &Job) -> Result<i32, Failed> {
    let path = format!("/proc/{0}/task/{0}/children", job.id());
    let children = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let first = children.split_whitespace().next().unwrap_or_default();
    first
        .parse()
        .map_err(|_| format!("no launcher: '{children}'"))
}

#[test]
fn killed_ranks_launchers_and_coordinators_do_not_keep_a_job_from_its_end() {
    on_trial(|trial, directory| {
        let target = trial.epochs_at();
        let mut command = launch(&target, &[])?;
        command.arg(trial.executable());
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let mut now = until_launched(&mut job, &target, &Value::Null)?;
        for (epoch, victim) in [(1, "rank"), (2, "launcher"), (3, "all")] {
            checkpoint(directory, &target)?;
            let ranks = strike::ranks(&target)?;
            match victim {
                "rank" => strike::signal(ranks[1], Signal::SIGKILL)?,
                "launcher" => strike::signal(launcher(&job)?, Signal::SIGKILL)?,
                _ => {
                    strike::signal(strike::coordinator(&target)?, Signal::SIGKILL)?;
                    for rank in ranks {
                        strike::signal(rank, Signal::SIGKILL)?;
                    }
                }
            }
            let next = until_launched(&mut job, &target, &now["launch"])?;
            ensure!(next["restarted_from"] == epoch, "{victim}: {next}");
            now = next;
        }
        checkpoint(directory, &target)?;
        // A coordinator alone has a successor, and no launch is needed.
        strike::signal(strike::coordinator(&target)?, Signal::SIGKILL)?;
        job.until("taken over", PATIENCE, |_| {
            file(&target)["predecessors"] == 1
        })?;
        ensure!(file(&target)["launch"] == now["launch"], "launched again");
        trial.go()?;
        let ended = trial.ends_well(job)?;
        for words in [
            "restart 1 of at most 10 from epoch 1",
            "restart 3 of at most 10 from epoch 3",
        ] {
            ensure!(
                ended.stderr.contains(words),
                "no '{words}': {}",
                ended.show()
            );
        }
        ensure!(!ended.stderr.contains("restart 4"), "{}", ended.show());
        Ok(())
    });
}

/// Rank 1 is held before it comes up, so that every launch counts as one that has failed at once, however slow the machine is.
#[test]
fn an_epoch_that_fails_at_once_three_times_is_left_for_the_one_before_it() {
    on_trial(|trial, directory| {
        let target = trial.epochs_at();
        let held = directory.file("held");
        fs::write(&held, "").map_err(|error| error.to_string())?;
        let mut command = launch(&target, &["--restarts", "5"])?;
        let fault = format!("restart-open:1:hold={}", held.display());
        command.env("STILLPOINT_FAULT", fault);
        // The directory that launch was told on its command line counts for every launch.
        command.env("STILLPOINT_DIR", directory.file("other.d"));
        command
            .arg(place::stillpoint()?)
            .args(["run", "--keep", "3", "--"]);
        command.arg(trial.executable());
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let mut now = until_launched(&mut job, &target, &Value::Null)?;
        checkpoint(directory, &target)?;
        checkpoint(directory, &target)?;
        for from in [2, 2, 2, 1] {
            strike::signal(launcher(&job)?, Signal::SIGTERM)?;
            let before = now["launch"].clone();
            job.until("launched again", PATIENCE, |_| {
                let now = file(&target);
                now["launch"] != before && now["state"] == "running"
            })?;
            now = file(&target);
            ensure!(now["restarted_from"] == from, "not from {from}: {now}");
        }
        fs::remove_file(&held).map_err(|error| error.to_string())?;
        trial.go()?;
        let ended = trial.ends_well(job)?;
        let words = "epoch 2 has failed at once 3 times in a row";
        ensure!(ended.stderr.contains(words), "{}", ended.show());
        Ok(())
    });
}

#[test]
fn the_limit_of_restarts_ends_a_job_that_goes_on_failing() {
    on_trial(|trial, directory| {
        let target = trial.epochs_at();
        let mut command = launch(&target, &["--restarts", "1"])?;
        command.arg(trial.executable());
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let now = until_launched(&mut job, &target, &Value::Null)?;
        checkpoint(directory, &target)?;
        strike::signal(strike::ranks(&target)?[0], Signal::SIGKILL)?;
        until_launched(&mut job, &target, &now["launch"])?;
        strike::signal(strike::ranks(&target)?[0], Signal::SIGKILL)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status != 0, "{}", ended.show());
        ensure!(ended.stderr.contains("(--restarts)"), "{}", ended.show());
        ensure!(ended.stdout.is_empty(), "{}", ended.show());
        Ok(())
    });
}

/// An end of the application's own, a suspend, and a signal to the supervisor are no failures.
#[test]
fn what_ends_by_itself_or_is_told_to_end_is_not_launched_again() {
    on_trial(|trial, directory| {
        let target = trial.epochs_at();
        let script = directory.file("ends");
        let count = directory.file("count");
        let text = format!("#!/bin/sh\necho x >>{}\nexit 7\n", count.display());
        let made = fs::write(&script, text)
            .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)));
        made.map_err(|error| error.to_string())?;
        let mut command = launch(&directory.file("own.d"), &[])?;
        command.arg(&script);
        let ended = trial.launch(command)?.end(PATIENCE)?;
        ensure!(ended.status == 7, "{}", ended.show());
        let lines = fs::read_to_string(&count).unwrap_or_default();
        ensure!(lines.lines().count() <= 2, "it was launched again: {lines}");
        ensure!(!ended.stderr.contains("restart"), "{}", ended.show());

        let mut command = launch(&target, &[])?;
        command.arg(trial.executable());
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;

        let mut command = launch(&target, &["--resume"])?;
        command.arg(trial.executable());
        job = trial.launch(command)?;
        let now = until_launched(&mut job, &target, &Value::Null)?;
        ensure!(now["restarted_from"] == 1, "{now}");
        strike::signal(job.id(), Signal::SIGTERM)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status != 0, "{}", ended.show());
        ensure!(!ended.stderr.contains("restart 1"), "{}", ended.show());
        Ok(())
    });
}
