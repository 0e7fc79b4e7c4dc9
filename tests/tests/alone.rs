//! A rank without a launcher: the real MPI starts a daemon of its own, which is no child of the application.

use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

#[test]
fn a_rank_without_a_launcher_is_checkpointed_suspended_and_restarted() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "clocks")?;
        let _turn = Turn::take()?;
        Directory::new("alone")?.run(|directory| run(&Trial::new(&program, 1, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn run(trial: &Trial) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut command = Command::new(place::stillpoint()?);
    command.arg("run").arg("--dir").arg(&target).arg("--");
    command.arg(trial.executable()).args(&trial.arguments);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    trial.suspended(job)?;
    for last in [false, true] {
        let mut command = Command::new(place::stillpoint()?);
        command.arg("restart").arg(&target);
        let mut job = trial.launch(command)?;
        let mut state = String::new();
        job.until("running again", std::time::Duration::from_secs(20), |_| {
            state = command::state(trial.directory, &target).unwrap_or_default();
            state == "running"
        })?;
        ensure!(state == "running", "it is {state}");
        if last {
            trial.go()?;
            trial.ends_well(job)?;
        } else {
            trial.suspended(job)?;
        }
    }
    Ok(())
}
