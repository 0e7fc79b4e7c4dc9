//! A crash of a lower half's thread is reported, whichever handler the application has for the signal, and ends the rank.

use std::time::Duration;

use stillpoint_tests::command;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, job};

const LONGEST: Duration = Duration::from_secs(60);

fn crashed() -> Result<(), Failed> {
    let program = Program::named(Kind::Still, "compute_without_mpi")?;
    Directory::new("own_crash")?.run(|directory| {
        let trial = Trial::new(&program, 2, directory)?;
        let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
        command
            .arg(trial.executable())
            .env("STILLPOINT_FAULT", "executor:1:crash");
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let answer = command::checkpoint(trial.directory, &trial.epochs_at())?;
        ensure!(answer.status != 0, "{}", answer.show());
        let ended = job.end(LONGEST)?;
        let thread = "a thread of the lower half ('stillpoint') has crashed: signal 11 (code 1) at address 0x8, instruction 0x";
        let line = ended.stderr.lines().find(|line| line.contains(thread));
        ensure!(
            line.is_some_and(|line| line.contains("stillpoint-lower-openmpi")),
            "{}",
            ended.show()
        );
        ensure!(ended.status == 128 + nix::libc::SIGSEGV, "{}", ended.show());
        Ok(())
    })
}

#[test]
fn a_thread_of_the_lower_half_that_crashes_says_so() {
    if let Err(failed) = crashed() {
        panic!("{failed}");
    }
}
