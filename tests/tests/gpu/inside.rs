//! Threads that are stopped in the middle of the driver's calls, or that call it while the devices are locked. They call it by themselves, or because an MPI
//! call asks the driver about a buffer. A checkpoint succeeds nevertheless.

use stillpoint_tests::command::exit;
use stillpoint_tests::gpu::Gpus;
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure, strike};

use crate::heat::{self, PATIENCE, node};

const RANKS: u32 = 2;

fn run(gpus: &Gpus, directory: &Directory, options: &[&str]) -> Result<(), Failed> {
    let mut command = job::mpirun(RANKS);
    command.arg(place::stillpoint()?).arg("run").arg("--dir");
    command.arg(directory.epochs()).args(options).arg("--");
    command.arg(Program::named(Kind::Gpu, "inside")?.build()?);
    command.env("TRIAL_DIR", directory.path());
    gpus.reach(&mut command)?;
    let mut job = Job::start(command, directory)?;
    let ready = |rank: u32| directory.file(&format!("ready.{rank}")).exists();
    job.until("counting", PATIENCE, |_| (0..RANKS).all(ready))?;
    for _ in 0..4 {
        heat::ask("checkpoint", directory, directory.epochs())?.expect(exit::DONE)?;
    }
    heat::ask("suspend", directory, directory.epochs())?.expect(exit::DONE)?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "{}", ended.show());
    let launch = || strike::job_file(directory.epochs()).unwrap_or_default()["launch"].clone();
    let before = launch();
    let mut command = job::restarted(RANKS, directory.epochs())?;
    gpus.reach(&mut command)?;
    let mut job = Job::start(command, directory)?;
    job.until("running", PATIENCE, |_| {
        let said = strike::job_file(directory.epochs()).unwrap_or_default();
        said["state"] == "running" && launch() != before
    })?;
    heat::ask("checkpoint", directory, directory.epochs())?.expect(exit::DONE)?;
    let go = directory.file("go");
    std::fs::write(&go, "").map_err(|error| format!("{}: {error}", go.display()))?;
    let ended = job.end(PATIENCE)?;
    let said = ended.stdout.lines().filter(|line| line.starts_with("OK "));
    ensure!(
        ended.status == 0 && said.count() == RANKS as usize,
        "{}",
        ended.show()
    );
    Ok(())
}

fn tested(options: &[&str]) {
    let tested = (|| {
        Directory::new("gpu-inside")?
            .run(|directory| run(&Gpus::start(&node(1))?, directory, options))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn threads_inside_the_driver_do_not_hinder_a_checkpoint() {
    tested(&["--copy", "off"]);
}

#[test]
fn nor_one_that_the_application_runs_on_behind() {
    tested(&["--copy", "on", "--gpu-staging", "off"]);
}
