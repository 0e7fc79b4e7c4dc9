//! MPI calls with buffers in a GPU's memory, while the real MPI does not support GPUs: they work under Stillpoint, across checkpoints and
//! restarts.

use std::fs;
use std::process::Command;

use stillpoint_tests::command::exit;
use stillpoint_tests::gpu::Gpus;
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure, strike};

use crate::heat::{self, PATIENCE, node};

const RANKS: u32 = 3;

fn on_a_node(test: impl FnOnce(&Gpus, &Directory) -> Result<(), Failed>) {
    let tested = (|| {
        Directory::new("gpu-buffers")?.run(|directory| test(&Gpus::start(&node(2))?, directory))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn start(gpus: &Gpus, directory: &Directory, argument: &str) -> Result<Job, Failed> {
    let mut command: Command = job::mpirun(RANKS);
    command.arg(place::stillpoint()?).arg("run").arg("--dir");
    command.arg(directory.epochs()).arg("--");
    command.arg(Program::named(Kind::Gpu, "device_buffers")?.build()?);
    command.arg(argument).env("TRIAL_DIR", directory.path());
    gpus.reach(&mut command)?;
    Job::start(command, directory)
}

/// Starts the program, and waits until it holds.
fn holding(gpus: &Gpus, directory: &Directory) -> Result<Job, Failed> {
    let mut job = start(gpus, directory, "hold")?;
    let ready = |rank: u32| directory.file(&format!("ready.{rank}")).exists();
    job.until("holding", PATIENCE, |_| (0..RANKS).all(ready))?;
    Ok(job)
}

fn all_right(ended: &Ended) -> Result<(), Failed> {
    let said = ended.stdout.lines().filter(|line| line.starts_with("OK "));
    ensure!(
        ended.status == 0 && said.count() == RANKS as usize,
        "{}",
        ended.show()
    );
    Ok(())
}

fn ends_right(job: Job, directory: &Directory) -> Result<(), Failed> {
    fs::write(directory.file("go"), "").map_err(|error| error.to_string())?;
    all_right(&job.end(PATIENCE)?)
}

#[test]
fn mpi_calls_take_a_gpus_memory() {
    on_a_node(|gpus, directory| all_right(&start(gpus, directory, "through")?.end(PATIENCE)?));
}

#[test]
fn operations_on_a_gpus_memory_go_on_after_a_checkpoint() {
    on_a_node(|gpus, directory| {
        let job = holding(gpus, directory)?;
        for _ in 0..2 {
            heat::ask("checkpoint", directory, directory.epochs())?.expect(exit::DONE)?;
        }
        ends_right(job, directory)
    });
}

#[test]
fn operations_on_a_gpus_memory_go_on_after_a_restart() {
    on_a_node(|gpus, directory| {
        let mut job = holding(gpus, directory)?;
        for _ in 0..2 {
            heat::ask("suspend", directory, directory.epochs())?.expect(exit::DONE)?;
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == 0, "{}", ended.show());
            let before = launch(directory);
            let mut command = job::restarted(RANKS, directory.epochs())?;
            gpus.reach(&mut command)?;
            job = Job::start(command, directory)?;
            job.until("running", PATIENCE, |_| {
                let said = strike::job_file(directory.epochs()).unwrap_or_default();
                said["state"] == "running" && launch(directory) != before
            })?;
        }
        ends_right(job, directory)
    });
}

fn launch(directory: &Directory) -> String {
    let said = strike::job_file(directory.epochs()).unwrap_or_default();
    said["launch"].as_str().unwrap_or_default().to_owned()
}
