//! A process of the job is killed at any moment of a checkpoint: committed epochs stay whole, and restart.
//!
//! A chain is one job that is killed again and again. It commits an epoch, a second checkpoint is requested, and a rank
//! gets SIGKILL at a seeded moment of it. The newest committed epoch is verified and restarted, and the restarted job
//! is the next one to be killed. At the end the program, which has checked every value on its way, must come to its
//! right end. `STILLPOINT_TEST_SEED` repeats the moments.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{Ended, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, reason, strike};

/// A job that has lost a rank is over within this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Moments in one chain at which a checkpoint was under way; there are five chains of them.
const MOMENTS: u32 = 10;

fn newest(trial: &Trial) -> u64 {
    command::epochs(&trial.epochs_at())
        .pop()
        .unwrap_or_default()
}

fn verified(trial: &Trial) -> Result<(), Failed> {
    let target = trial.epochs_at();
    command::stillpoint(trial.directory, [Path::new("verify"), target.as_path()])?
        .expect(exit::DONE)?;
    Ok(())
}

/// The result of a second checkpoint whose job was struck.
struct Struck {
    answer: Answer,
    took: Duration,
}

/// Asks for a checkpoint (or suspend) and sends SIGKILL to `victim` after `delay`.
fn strike_during(
    trial: &Trial,
    suspend: bool,
    victim: i32,
    delay: Duration,
) -> Result<Struck, Failed> {
    let target = trial.epochs_at();
    thread::scope(|scope| {
        let started = Instant::now();
        let asking = scope.spawn(|| match suspend {
            true => command::suspend(trial.directory, &target),
            false => command::checkpoint(trial.directory, &target),
        });
        thread::sleep(delay);
        // The process may have ended already, if the suspend was quicker.
        let _ = strike::signal(victim, Signal::SIGKILL);
        let answer = asking
            .join()
            .map_err(|_| "the thread that asks failed".to_owned())??;
        Ok(Struck {
            answer,
            took: started.elapsed(),
        })
    })
}

/// Checks that the command's answer agrees with the files on disk, and that these are whole.
fn consistent(trial: &Trial, before: u64, struck: &Struck, ended: &Ended) -> Result<(), Failed> {
    let after = newest(trial);
    let show = || format!("{}\n{}", struck.answer.show(), ended.show());
    match struck.answer.status {
        exit::DONE => ensure!(
            after > before,
            "it said that an epoch was committed, but the newest is {after}: {}",
            show()
        ),
        exit::FAILED => reason::one(&struck.answer.stderr, &[])
            .map_err(|failed| format!("{failed}\n{}", show()))?,
        _ => return Err(format!("an undocumented status: {}", show())),
    }
    ensure!(
        after >= before,
        "epoch {before} was committed, now the newest is {after}: {}",
        show()
    );
    verified(trial).map_err(|failed| format!("{failed}\n{}", show()))
}

fn chain(name: &str, salt: u64) {
    let mut seed = Seed::new();
    let start = seed.start;
    eprintln!("STILLPOINT_TEST_SEED={start} ({name})");
    // Every chain has moments of its own, even with the same seed.
    for _ in 0..salt {
        seed.draw();
    }
    let tested = (|| {
        let program = Program::named(Kind::Moving, name)?;
        Directory::new(&format!("faults-{name}"))?.run(|directory| {
            killed_again_and_again(&Trial::new(&program, 2, directory)?, &mut seed)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}\n(STILLPOINT_TEST_SEED={start})");
    }
}

fn killed_again_and_again(trial: &Trial, seed: &mut Seed) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let (mut committed, mut given_up, mut too_late) = (0, 0, 0);
    // A job's first checkpoint may take longer than later ones, so moments are drawn from the shortest one seen.
    let mut shortest = Duration::MAX;
    while committed + given_up < MOMENTS {
        let moment = committed + given_up + too_late;
        ensure!(
            moment < 3 * MOMENTS,
            "{too_late} of {moment} kills came after the checkpoint"
        );
        let show = |failed: Failed| format!("moment {moment}: {failed}");
        let first = command::checkpoint(trial.directory, &target)?
            .expect(exit::DONE)
            .map_err(show)?;
        let before = newest(trial);
        let victims = strike::ranks(&target)?;
        ensure!(
            victims.len() == trial.ranks as usize,
            "job.json names the ranks' processes {victims:?}"
        );
        let victim = victims[seed.below(victims.len() as u64) as usize];
        shortest = shortest.min(first.took);
        let delay = seed.moment(shortest);
        let suspend = seed.below(3) == 0;
        let struck = strike_during(trial, suspend, victim, delay).map_err(show)?;
        ensure!(
            struck.took < Duration::from_secs(20),
            "moment {moment}: the answer came after {:.1} s: {}",
            struck.took.as_secs_f64(),
            struck.answer.show()
        );
        let ended = job.end(PATIENCE).map_err(show)?;
        ensure!(
            suspend || ended.status != 0,
            "moment {moment}: a job that lost a rank ended well: {}",
            ended.show()
        );
        match struck.answer.status {
            _ if struck.answer.took < delay => {
                shortest = shortest.min(struck.answer.took);
                too_late += 1;
            }
            exit::DONE => committed += 1,
            _ => given_up += 1,
        }
        consistent(trial, before, &struck, &ended).map_err(|failed| {
            format!(
                "moment {moment}, {} of {:.3} s, {}: {failed}",
                if suspend { "suspend" } else { "checkpoint" },
                first.took.as_secs_f64(),
                format_args!("killed after {:.3} s", delay.as_secs_f64())
            )
        })?;
        job = trial
            .resumed()
            .map_err(|failed| format!("restart after moment {moment}: {failed}"))?;
    }
    eprintln!(
        "{}: {MOMENTS} moments, {committed} epochs committed nevertheless, {given_up} given up; {too_late} kills came \
         after a checkpoint",
        trial.program.name
    );
    ensure!(
        given_up > 0,
        "no kill fell into a checkpoint: {committed} of {MOMENTS} were committed"
    );
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

#[test]
fn a_rank_killed_while_a_token_goes_round() {
    chain("ring", 0);
}

#[test]
fn a_rank_killed_among_collective_operations() {
    chain("collective_mix", 100);
}

#[test]
fn a_rank_killed_among_random_messages() {
    chain("random_messages", 200);
}

#[test]
fn a_rank_killed_while_objects_come_and_go() {
    chain("objects_come_and_go", 300);
}

#[test]
fn a_rank_killed_while_lines_are_written_to_a_file() {
    chain("numbered_lines", 400);
}

/// Whenever the coordinator dies, another one takes over, the application runs on, and the next checkpoint is written.
#[test]
fn another_coordinator_takes_over_whenever_one_dies() {
    let mut seed = Seed::new();
    let start = seed.start;
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("faults-coordinator")?
            .run(|directory| without_coordinator(&Trial::new(&program, 2, directory)?, &mut seed))
    })();
    if let Err(failed) = tested {
        panic!("{failed}\n(STILLPOINT_TEST_SEED={start})");
    }
}

fn without_coordinator(trial: &Trial, seed: &mut Seed) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut job: Job = trial.split()?;
    trial.ready(&mut job)?;
    for moment in 0..5 {
        let told = |failed: Failed| format!("moment {moment}: {failed}");
        let first = command::checkpoint(trial.directory, &target)?.expect(exit::DONE);
        let first = first.map_err(told)?;
        let before = newest(trial);
        let victim = strike::coordinator(&target)?;
        let struck = strike_during(trial, false, victim, seed.moment(first.took))?;
        ensure!(
            [exit::DONE, exit::FAILED].contains(&struck.answer.status),
            "moment {moment}: an undocumented status: {}",
            struck.answer.show()
        );
        ensure!(
            newest(trial) >= before,
            "moment {moment}: epoch {before} was committed, now the newest is {}",
            newest(trial)
        );
        ensure!(
            job.runs(),
            "moment {moment}: the job did not run on: {}",
            job.stderr()
        );
    }
    // The command finds the successor, and its epochs go on.
    let before = newest(trial);
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    ensure!(
        newest(trial) > before,
        "the newest epoch is {}",
        newest(trial)
    );
    verified(trial)?;
    ensure!(
        job.stderr().contains("has died: starting another one"),
        "nobody said that the coordinator died: {}",
        job.stderr()
    );
    // The coordinator is killed again, and a signal asks for a suspend before there is a successor: the request is not
    // forgotten.
    strike::signal(strike::coordinator(&target)?, Signal::SIGKILL)?;
    let rank = strike::ranks(&target)?[0];
    strike::signal(rank, Signal::SIGUSR1)?;
    job.end(PATIENCE)?;
    let shown = strike::job_file(&target)?;
    ensure!(shown["state"] == "suspended", "job.json says {shown}");
    let job = trial.resumed()?;
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}
