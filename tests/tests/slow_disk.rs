//! A shared file system may take half a minute to force a few bytes to its disks. The coordinator answers in the meantime.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{self, Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, job};

/// The longest time until a checkpoint of a small job writes job.json.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_job_tells_its_state_while_job_json_is_written() {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("slow-disk")?
            .run(|directory| answers_while_it_writes(&Trial::new(&program, 2, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn answers_while_it_writes(trial: &Trial) -> Result<(), Failed> {
    let library = program::build_library("slow_disk.c", trial.directory.path())?;
    let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
    command
        .env("LD_PRELOAD", library)
        .arg(trial.program.build()?);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    let slow = trial.directory.file("slow");
    fs::write(&slow, b"").map_err(|error| format!("{}: {error}", slow.display()))?;
    thread::scope(|scope| {
        let asking = scope.spawn(|| command::checkpoint(trial.directory, &trial.epochs_at()));
        let status = held(trial).and_then(|()| status(trial));
        fs::remove_file(&slow).map_err(|error| format!("{}: {error}", slow.display()))?;
        let answer = asking
            .join()
            .map_err(|_| "the thread that asks failed".to_owned())??;
        let status = status?;
        // Without an answer, a command reads what it can from files.
        ensure!(
            status["coordinator"]["reachable"] == true,
            "the coordinator did not answer: {status}"
        );
        answer.expect(exit::DONE)
    })?;
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

/// Returns the output of `stillpoint status` for the job.
fn status(trial: &Trial) -> Result<Value, Failed> {
    let target = trial.epochs_at();
    let words = [Path::new("status"), target.as_path(), Path::new("--json")];
    command::stillpoint(trial.directory, words)?
        .expect(exit::DONE)?
        .json()
}

/// Waits until the coordinator forces job.json to disk.
fn held(trial: &Trial) -> Result<(), Failed> {
    let file = trial.directory.file("held");
    let started = Instant::now();
    while !file.exists() {
        ensure!(started.elapsed() < PATIENCE, "nobody writes job.json");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
