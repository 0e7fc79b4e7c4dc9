//! A checkpoint waits for hindrances that pass. One that stays is the answer when the request's time is over.

use std::ffi::OsStr;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};
use stillpoint_tests::{Failed, ensure, job};

#[test]
fn a_child_that_ends_holds_a_suspend_up_and_no_longer() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "child_for_a_while")?;
        Directory::new("hindered")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
            command.arg(trial.executable());
            let mut job = trial.launch(command)?;
            trial.ready(&mut job)?;
            refused_at_the_limit(&trial)?;
            committed_when_it_has_passed(&trial)?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Children that follow each other leave no moment in which no rank has one. Therefore the next child of each rank
/// waits.
#[test]
fn children_one_after_the_other_do_not_starve_a_checkpoint() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "children_in_turn")?;
        Directory::new("children-in-turn")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.first_ready(&mut job, 1)?;
            for _ in 0..3 {
                ask(&trial, "20")?.expect(exit::DONE)?;
            }
            let target = trial.epochs_at();
            let words = ["suspend", "--timeout", "20"].map(OsStr::new);
            let words = words.into_iter().chain([target.as_os_str()]);
            command::stillpoint(directory, words)?.expect(exit::DONE)?;
            job.end(PATIENCE)?;
            trial.go()?;
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn refused_at_the_limit(trial: &Trial) -> Result<(), Failed> {
    let answer = ask(trial, "2")?.expect_reason(exit::REFUSED, "child process")?;
    ensure!(
        answer.took >= Duration::from_secs(2) && answer.took < Duration::from_secs(6),
        "refused after {:?}",
        answer.took
    );
    let waits = "waiting until this has passed: rank 0: it has a child process";
    ensure!(
        answer.show().matches(waits).count() == 1,
        "{}",
        answer.show()
    );
    let at_once = command::suspend(trial.directory, &trial.epochs_at())?;
    let at_once = at_once.expect_reason(exit::REFUSED, "child process")?;
    ensure!(at_once.took < Duration::from_secs(2), "{:?}", at_once.took);
    Ok(())
}

fn committed_when_it_has_passed(trial: &Trial) -> Result<(), Failed> {
    thread::scope(|scope| {
        let asking = scope.spawn(|| ask(trial, "60"));
        let end = Instant::now() + Duration::from_secs(20);
        while !waits_for(trial)?.contains("child process") {
            ensure!(
                Instant::now() < end,
                "status does not say what is waited for"
            );
        }
        fs::write(trial.directory.file("end"), "").map_err(|error| error.to_string())?;
        let answer = asking
            .join()
            .map_err(|_| "the request panicked".to_owned())??;
        let json = answer.expect(exit::DONE)?.json()?;
        let waited_for = json["waited_for"].to_string();
        ensure!(waited_for.contains("child process"), "{json}");
        ensure!(waits_for(trial)? == "[]", "it still waits");
        Ok(())
    })
}

fn waits_for(trial: &Trial) -> Result<String, Failed> {
    let target = trial.epochs_at();
    let words = [
        OsStr::new("status"),
        target.as_os_str(),
        OsStr::new("--json"),
    ];
    let json = command::stillpoint(trial.directory, words)?
        .expect(exit::DONE)?
        .json()?;
    Ok(json["live"]["waits_for"].to_string())
}

fn ask(trial: &Trial, seconds: &str) -> Result<Answer, Failed> {
    let target = trial.epochs_at();
    let words = ["checkpoint", "--json", "--timeout", seconds].map(OsStr::new);
    command::stillpoint(
        trial.directory,
        words.into_iter().chain([target.as_os_str()]),
    )
}
