//! A rank without processor time still answers polls, because its agent is another thread. The coordinator waits for such a
//! rank if only the processor keeps it from parking. It also waits for a collective operation that has not ended only
//! because it is long. Otherwise it would let other ranks go on, to operations that some rank may reach much later.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, strike};

/// The time without processor for the rank: many polls of ranks that wait for each other, less than two of a running
/// one.
const HELD: Duration = Duration::from_millis(200);

/// If this rank were taken for one that waits for others, the other rank in the barrier would be let on, to an operation
/// that the last rank does not begin.
#[test]
fn a_rank_in_the_barrier_of_two_phases_is_waited_for() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "barrier_entered")?.towards("barrier");
        Directory::new("held-back")?
            .run(|directory| parks_late(&Trial::new(&program, 3, directory)?, 1))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Parked ranks are not let on because of a long collective operation that all of its members have reached.
#[test]
fn a_long_collective_operation_is_waited_for() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "long_operation")?;
        Directory::new("long-operation")?
            .run(|directory| ends_late(&Trial::new(&program, 4, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// The first file appears when all others have been stopped. Rank 0 sees it only if it is let on.
fn ends_late(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    thread::scope(|scope| {
        let asking = scope.spawn(|| command::checkpoint(trial.directory, &trial.epochs_at()));
        let made = ["come", "end"].map(|name| {
            thread::sleep(HELD / 2);
            fs::write(trial.directory.file(name), b"").map_err(|error| error.to_string())
        });
        let answer = asking
            .join()
            .map_err(|_| "the thread that asks failed".to_owned())??;
        made.into_iter().collect::<Result<Vec<()>, _>>()?;
        answer.expect(exit::DONE)
    })?;
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

fn parks_late(trial: &Trial, rank: usize) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let ranks = strike::ranks(&trial.epochs_at())?;
    let late = ranks.get(rank).ok_or("no such rank in job.json")?;
    let late = Pid::from_raw(*late);
    thread::scope(|scope| {
        hold(late).map_err(|error| error.to_string())?;
        let asking = scope.spawn(|| command::checkpoint(trial.directory, &trial.epochs_at()));
        thread::sleep(HELD);
        let let_go = ptrace::detach(late, None).map_err(|error| error.to_string());
        let answer = asking
            .join()
            .map_err(|_| "the thread that asks failed".to_owned())??;
        let_go.and_then(|()| answer.expect(exit::DONE))
    })?;
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

/// Holds only the process's first thread.
fn hold(pid: Pid) -> nix::Result<()> {
    ptrace::seize(pid, ptrace::Options::empty())?;
    ptrace::interrupt(pid)?;
    waitpid(pid, None)?;
    Ok(())
}
