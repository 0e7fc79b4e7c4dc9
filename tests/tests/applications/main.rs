//! Real programs, as Debian ships them, and the ways that people start them.

mod lammps;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, strike};

/// The longest time for a run, or a part of one.
const PATIENCE: Duration = Duration::from_secs(150);

fn must(tested: Result<(), Failed>) {
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn application(name: &str) -> PathBuf {
    place::sources().join("applications").join(name)
}

/// Runs a moving program's trial with a command line from `launch`.
fn on_trial(name: &str, ranks: u32, test: impl FnOnce(&Trial, &Path) -> Result<(), Failed>) {
    must((|| {
        let program = Program::named(Kind::Moving, name)?;
        let executable = program.build()?;
        Directory::new(&format!("application-{name}"))?
            .run(|directory| test(&Trial::new(&program, ranks, directory)?, &executable))
    })());
}

/// Makes `mpirun -n RANKS stillpoint run --dir DIR OPTIONS... --`.
fn run_with(trial: &Trial, options: &[&str]) -> Result<Command, Failed> {
    let mut command = job::mpirun(trial.ranks);
    command.arg(place::stillpoint()?).arg("run").arg("--dir");
    command.arg(trial.epochs_at()).args(options).arg("--");
    Ok(command)
}

#[test]
fn python_with_mpi4py() {
    on_trial("ring", 3, |trial, _| {
        let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
        command
            .arg("/usr/bin/python3")
            .arg(application("objects.py"));
        let mut seed = Seed::new();
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let again = (|| {
            for _ in 0..2 {
                command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
                thread::sleep(seed.moment(Duration::from_millis(200)));
                trial.suspended(job)?;
                job = trial.resumed()?;
                thread::sleep(seed.moment(Duration::from_millis(200)));
            }
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })();
        again.map_err(|failed: Failed| format!("{failed}\n(STILLPOINT_TEST_SEED={})", seed.start))
    });
}

#[test]
fn a_script_that_hands_over_to_the_program() {
    on_trial("collective_mix", 2, |trial, executable| {
        let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
        command.arg(application("launcher")).arg(executable);
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        let job = trial.resumed()?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    });
}

#[test]
fn a_script_that_waits_for_the_program() {
    on_trial("ring", 2, |trial, executable| {
        let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
        command.arg(application("waiting_launcher")).arg(executable);
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        trial.go()?;
        let ended = trial.ends_well(job)?;
        ensure!(
            ended.stdout.matches("launcher: 0").count() == 2,
            "the launchers did not go on: {}",
            ended.show()
        );
        Ok(())
    });
}

#[test]
fn a_script_that_waits_does_not_go_on_at_a_suspend() {
    on_trial("ring", 2, |trial, executable| {
        let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
        let line = "sh \"$0\" \"$1\"; echo after the program";
        command.args(["sh", "-c", line]);
        command.arg(application("waiting_launcher")).arg(executable);
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        command::suspend(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "suspended: {}", ended.show());
        ensure!(
            !ended.stdout.contains("launcher:") && !ended.stdout.contains("after the program"),
            "what had started the program went on: {}",
            ended.show()
        );
        ensure!(
            ended.stderr.matches("the suspend ends 'sh -c ").count() == 2,
            "nobody says what ends: {}",
            ended.show()
        );
        let job = trial.resumed()?;
        trial.go()?;
        let ended = trial.ends_well(job)?;
        ensure!(
            ended
                .stderr
                .matches("nothing of it comes after the program")
                .count()
                == 2,
            "nobody says what is missing: {}",
            ended.show()
        );
        Ok(())
    });
}

/// Checks that the job ends suspended in its first epoch, and runs to its right end when it is resumed.
fn suspended_once(trial: &Trial, job: Job) -> Result<(), Failed> {
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "suspended: {}", ended.show());
    let state = command::state(trial.directory, &trial.epochs_at())?;
    ensure!(state == "suspended", "it is '{state}'");
    ensure!(
        command::epochs(&trial.epochs_at()) == [1],
        "epochs {:?}",
        command::epochs(&trial.epochs_at())
    );
    let job = trial.resumed()?;
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

#[test]
fn sigusr1_to_a_rank_means_suspend() {
    on_trial("ring", 2, |trial, _| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        let ranks = strike::ranks(&trial.epochs_at())?;
        ensure!(ranks.len() == 2, "ranks in job.json: {ranks:?}");
        strike::signal(ranks[1], Signal::SIGUSR1)?;
        suspended_once(trial, job)
    });
}

/// Every rank gets the signal, at about the same time, as batch systems do it. The result is one suspend.
#[test]
fn sigusr1_to_all_ranks_means_suspend_once() {
    on_trial("ring", 4, |trial, _| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        for rank in strike::ranks(&trial.epochs_at())? {
            strike::signal(rank, Signal::SIGUSR1)?;
        }
        suspended_once(trial, job)
    });
}

/// The one line that a batch script needs: it starts the job, and resumes it every time after that.
#[test]
fn resume_starts_afresh_and_then_carries_on() {
    on_trial("numbered_lines", 2, |trial, executable| {
        let line = || {
            let mut command = run_with(trial, &["--resume"])?;
            command.arg(executable);
            trial.launch(command)
        };
        let mut job = line()?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        // A resumed job does not report again that it is ready.
        fs::remove_file(trial.directory.file("ready.0")).map_err(|error| error.to_string())?;
        let mut job = line()?;
        let target = trial.epochs_at();
        let mut from = None;
        job.until("carrying on", PATIENCE, |_| {
            let state = command::state(trial.directory, &target);
            from = strike::job_file(&target)
                .ok()
                .and_then(|file| file["restarted_from"].as_u64());
            state.as_deref() == Ok("running") && from.is_some()
        })?;
        ensure!(from == Some(1), "restarted from {from:?}");
        command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
        trial.go()?;
        trial.ends_well(job)?;
        ensure!(
            !trial.directory.file("ready.0").exists(),
            "it began again from its beginning"
        );
        Ok(())
    });
}

#[test]
fn epochs_are_written_by_the_clock_and_old_ones_go() {
    on_trial("halo_exchange", 2, |trial, executable| {
        let mut command = run_with(trial, &["--interval", "1s", "--keep", "2"])?;
        command.arg(executable);
        let target = trial.epochs_at();
        let started = Instant::now();
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let mut most = 0;
        job.until("at its fifth epoch", PATIENCE, |_| {
            let epochs = command::epochs(&target);
            most = most.max(epochs.len());
            epochs.last().is_some_and(|newest| *newest >= 5)
        })?;
        ensure!(
            started.elapsed() >= Duration::from_secs(4),
            "five epochs, one a second, in {:.1} s",
            started.elapsed().as_secs_f64()
        );
        // A third epoch exists beside the kept two only while the oldest is being removed.
        ensure!(most <= 3, "{most} epochs at once");
        trial.go()?;
        trial.ends_well(job)?;
        let epochs = command::epochs(&target);
        ensure!(
            epochs.len() == 2 && epochs[1] == epochs[0] + 1,
            "kept: {epochs:?}"
        );
        for epoch in &epochs {
            let number = epoch.to_string();
            let words = [
                "verify".as_ref(),
                target.as_os_str(),
                "--epoch".as_ref(),
                number.as_ref(),
            ];
            command::stillpoint(trial.directory, words)?.expect(exit::DONE)?;
        }
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    });
}
