//! Jobs that are just starting or ending when all jobs are to be suspended.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_tests::command::exit;
use stillpoint_tests::job::Job;
use stillpoint_tests::{Failed, ensure, strike};

use super::house::{PATIENCE, Work, shown, text};
use super::{on_trial, outcomes};

/// Milliseconds from the file that lets a job end to the request.
const MOMENTS: [u64; 6] = [0, 20, 50, 100, 200, 400];

/// Tells whether a user runs this program.
fn is_run_by(user: u32, program: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut of_user = processes
        .map(|entry| entry.path())
        .filter(|process| fs::metadata(process).is_ok_and(|about| about.uid() == user));
    of_user.any(|process| fs::read_link(process.join("exe")).is_ok_and(|it| it == program))
}

/// The command runs, but there is neither a coordinator nor `job.json` yet: the suspend waits for the job.
#[test]
fn a_job_that_is_just_starting_is_waited_for_and_suspended() {
    on_trial("starting", |house, directory| {
        let work = Work::new(house, house.users[0], 0)?;
        let (epochs, program) = (work.epochs(), house.program.clone());
        let run = ["run", "--dir", shown(&epochs), "--", shown(&program)];
        let mut command = work.command(&run);
        command.env("STILLPOINT_FAULT", "job-write:stall=3000");
        let mut job = Job::start(command, directory)?;
        let own = house.root.join("stillpoint");
        let began = Instant::now();
        while !is_run_by(work.user, &own) {
            ensure!(began.elapsed() < PATIENCE, "it does not start");
            thread::sleep(Duration::from_millis(5));
        }
        let early = !epochs.join("job.json").exists();
        ensure!(early, "it has started");
        let words = ["suspend", "--all", "--timeout", "60", "--json"];
        let answer = house.stillpoint(directory, &words)?.expect(exit::DONE)?;
        let suspended = outcomes(&answer.json()?, "suspended").len();
        if !house.is_root() {
            // A private registry is the only source, and it has no entry of the job.
            ensure!(suspended == 0 && job.runs(), "{}", answer.show());
            return Ok(());
        }
        ensure!(suspended == 1, "{}", answer.show());
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        restarted(&work, directory)
    });
}

/// The job is suspended, or has come to its end, but is never reported as staying.
#[test]
fn a_job_that_comes_to_its_end_meanwhile_is_none_that_stays() {
    on_trial("ending", |house, directory| {
        for (number, moment) in MOMENTS.into_iter().enumerate() {
            let work = Work::new(house, house.users[0], number)?;
            let mut job = work.run(directory)?;
            work.ready(&mut job)?;
            fs::write(work.directory.join("go"), "").map_err(text)?;
            thread::sleep(Duration::from_millis(moment));
            let words = ["suspend", "--all", "--timeout", "60", "--json"];
            let answer = house.stillpoint(directory, &words)?.expect(exit::DONE)?;
            let suspended = outcomes(&answer.json()?, "suspended").len();
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == 0, "{}", ended.show());
            let state = strike::job_file(&work.epochs())?["state"].to_string();
            match suspended {
                1 => {
                    ensure!(state.contains("suspended"), "it is {state}");
                    restarted(&work, directory)?;
                }
                _ => ensure!(
                    state.contains("finished") && ended.stdout.contains("OK 0"),
                    "{moment} ms: it is {state}: {}",
                    answer.show()
                ),
            }
        }
        Ok(())
    });
}

/// Restarts the job, which must come to its right end.
fn restarted(work: &Work, directory: &stillpoint_tests::place::Directory) -> Result<(), Failed> {
    let job = work.start(directory, &["restart", shown(&work.epochs())])?;
    fs::write(work.directory.join("go"), "").map_err(text)?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.stdout.contains("OK 0"), "{}", ended.show());
    Ok(())
}
