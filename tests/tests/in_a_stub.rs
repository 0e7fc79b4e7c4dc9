//! No image contains a thread that has entered a stub and is not yet inside MPI. The stub may have found the direct way open for this launch's MPI, and this
//! may not hold for another launch's.

use std::fs;
use std::path::Path;

use stillpoint_tests::Failed;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;

#[test]
fn a_handler_on_top_of_a_stub_returns_before_its_thread_stops() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "stopped_in_a_stub")?;
        Directory::new("in-a-stub")?.run(|directory| run(&Trial::new(&program, 1, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn run(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let target = trial.epochs_at();
    let asked = ["checkpoint", "--timeout", "2"].map(Path::new);
    let asked = asked.into_iter().chain([target.as_path()]);
    command::stillpoint(trial.directory, asked)?.expect_reason(exit::FAILED, "rank 0 computing")?;
    fs::write(trial.directory.file("on"), "").map_err(|error| error.to_string())?;
    trial.suspended(job)?;
    trial.go()?;
    trial.ends_well(trial.restarted()?).map(drop)
}
