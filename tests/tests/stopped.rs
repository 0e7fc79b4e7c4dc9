//! A rank whose process is stopped is named by the checkpoint that waits for it.

use std::ffi::OsStr;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stillpoint_refusals::Code;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};
use stillpoint_tests::{Failed, ensure, strike};

/// The longest time until the rank is named.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_stopped_rank_is_named_soon_and_a_checkpoint_that_waits_comes_when_it_runs_on() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "self_messages")?;
        Directory::new("stopped")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            let rank = strike::ranks(&trial.epochs_at())?[1];
            strike::signal(rank, Signal::SIGSTOP)?;
            let answer = command::suspend(directory, &trial.epochs_at())?;
            let answer = answer.expect_code(exit::REFUSED, Code::StoppedRank)?;
            let named = format!("rank 1 (process {rank} on ");
            let advice = format!("kill -CONT {rank}");
            for said in [named, advice] {
                ensure!(answer.stderr.contains(&said), "{}", answer.show());
            }
            ensure!(answer.took < SOON, "{}", answer.show());
            comes_when_it_runs_on(&trial, rank)?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn comes_when_it_runs_on(trial: &Trial, rank: i32) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let ask = |words: &[&'static str]| {
        let words = words.iter().map(OsStr::new).chain([target.as_os_str()]);
        command::stillpoint(trial.directory, words)
    };
    thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&["checkpoint", "--timeout", "35"]));
        let said = until(|| {
            let status = ask(&["status", "--json"])?.expect(exit::DONE)?.json()?;
            let waits_for = status["live"]["waits_for"].to_string();
            Ok(waits_for.contains("is stopped by a signal"))
        });
        // The rank runs on in any case, or the test's job would not end.
        strike::signal(rank, Signal::SIGCONT)?;
        let answer = asking.join();
        said?;
        let answer = answer.map_err(|_| "the request panicked".to_owned())??;
        answer.expect(exit::DONE).map(drop)
    })
}

fn until(mut holds: impl FnMut() -> Result<bool, Failed>) -> Result<(), Failed> {
    let began = Instant::now();
    while !holds()? {
        ensure!(began.elapsed() < PATIENCE, "it is never said");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
