//! `stillpoint run` inside of `stillpoint run`, for example in a script that is itself started so: the program belongs to the
//! one job.

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, job};

#[test]
fn a_run_inside_of_a_run_is_one_job() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "clocks")?;
        Directory::new("nested")?.run(|directory| run(&Trial::new(&program, 2, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn run(trial: &Trial) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut command = job::under_stillpoint(2, &target)?;
    command.arg(place::stillpoint()?);
    command
        .args(["run", "--dir"])
        .arg(trial.directory.file("inner"));
    command
        .arg("--")
        .arg(trial.executable())
        .args(&trial.arguments);
    let mut started = trial.launch(command)?;
    trial.ready(&mut started)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    trial.suspended(started)?;
    let started = trial.restarted()?;
    trial.go()?;
    trial.ends_well(started)?;
    Ok(())
}
