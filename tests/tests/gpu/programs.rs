//! Programs that use the driver in ways of their own: kinds of memory, work that is under way, cudarc. What the driver cannot checkpoint is refused by its own
//! word, and the job runs on.

use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure, strike};

use crate::carried::again_and_again;
use crate::heat::{self, LONG, PATIENCE, node};

const RANKS: u32 = 2;

/// The program on a node, with an option of Stillpoint's.
struct Kinds<'a> {
    gpus: Gpus,
    directory: &'a Directory,
}

impl Kinds<'_> {
    fn start(&self, option: &str, kind: &str) -> Result<Job, Failed> {
        let mut command: Command = job::mpirun(RANKS);
        command
            .arg(place::stillpoint()?)
            .args(["run", option, "--dir"]);
        command.arg(self.directory.epochs()).arg("--");
        command.arg(Program::named(Kind::Gpu, "kinds")?.build()?);
        command.arg(kind).env("TRIAL_DIR", self.directory.path());
        self.gpus.reach(&mut command)?;
        let mut job = Job::start(command, self.directory)?;
        let ready = |rank: u32| self.directory.file(&format!("ready.{rank}")).exists();
        job.until("counting", PATIENCE, |_| (0..RANKS).all(ready))?;
        Ok(job)
    }

    fn checkpoint(&self) -> Result<command::Answer, Failed> {
        heat::ask("checkpoint", self.directory, self.directory.epochs())
    }

    /// Suspends and restarts it.
    fn moved(&self, job: Job) -> Result<Job, Failed> {
        heat::ask("suspend", self.directory, self.directory.epochs())?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        let said = || strike::job_file(self.directory.epochs()).unwrap_or_default();
        let before = said()["launch"].clone();
        let mut command = job::restarted(RANKS, self.directory.epochs())?;
        self.gpus.reach(&mut command)?;
        let mut job = Job::start(command, self.directory)?;
        job.until("running", PATIENCE, |_| {
            let said = said();
            said["state"] == "running" && said["launch"] != before
        })?;
        Ok(job)
    }

    fn ends_well(&self, job: Job) -> Result<Ended, Failed> {
        let go = self.directory.file("go");
        std::fs::write(&go, "").map_err(|error| format!("{}: {error}", go.display()))?;
        let ended = job.end(PATIENCE)?;
        let said = ended.stdout.lines().filter(|line| line.starts_with("OK "));
        ensure!(
            ended.status == 0 && said.count() == RANKS as usize,
            "{}",
            ended.show()
        );
        Ok(ended)
    }
}

fn on(node: &Node, test: impl FnOnce(&Kinds) -> Result<(), Failed>) {
    let tested = (|| {
        let _turn = Turn::take()?;
        Directory::new("gpu-kinds")?.run(|directory| {
            test(&Kinds {
                gpus: Gpus::start(node)?,
                directory,
            })
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// It is checkpointed twice, moved twice, and ends right, whether memory is staged or not.
fn carried(kind: &str) {
    for option in ["--gpu-staging=on", "--gpu-staging=off"] {
        on(&node(1), |kinds| {
            let mut job = kinds.start(option, kind)?;
            for _ in 0..2 {
                kinds.checkpoint()?.expect(exit::DONE)?;
            }
            for _ in 0..2 {
                job = kinds.moved(job)?;
            }
            kinds.checkpoint()?.expect(exit::DONE)?;
            kinds.ends_well(job).map(drop)
        });
    }
}

/// Kernels in streams that wait for each other, functions of the host, copies to pinned, registered and managed memory.
#[test]
fn work_under_way_and_every_kind_of_memory_are_carried() {
    carried("managed");
}

/// Memory that has several addresses, and memory that has none.
#[test]
fn memory_that_is_made_and_mapped_in_two_steps_is_carried() {
    carried("mapped");
}

/// Launched work is done before the devices are locked; what was written down is launched on after a restart.
#[test]
fn graphs_are_carried() {
    carried("graph");
}

/// What the driver does not checkpoint: it says so, there is no epoch, and the job runs on to its end.
fn refused(node: &Node, kind: &str) {
    on(node, |kinds| {
        let mut job = kinds.start("--gpu-staging=auto", kind)?;
        for _ in 0..2 {
            let answer = kinds.checkpoint()?;
            answer.expect_reason(exit::FAILED, "CUDA_ERROR_NOT_SUPPORTED")?;
        }
        ensure!(
            job.runs() && command::epochs(kinds.directory.epochs()).is_empty(),
            "{}",
            job.stderr()
        );
        kinds.ends_well(job).map(drop)
    });
}

#[test]
fn memory_that_processes_share_is_refused() {
    refused(&node(1), "shared");
}

#[test]
fn managed_memory_is_refused_by_a_driver_that_does_not_carry_it() {
    let mut other = node(1);
    other.managed = false;
    refused(&other, "managed");
}

/// The same plate as the C program's, and so the same result.
#[test]
fn heat_with_cudarc() {
    heat::on_with("heat_cudarc", &node(2), 2, LONG, |heat| {
        again_and_again(heat, &[])
    });
}
