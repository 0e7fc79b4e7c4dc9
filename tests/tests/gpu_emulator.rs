//! The emulated driver by itself, without Stillpoint: what tests of GPU jobs build on.

use std::fs;
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command;
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

const MEMORY: u64 = 100 << 20;
/// What a holder has on each device.
const HELD: u64 = 6 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn tested(name: &str, node: &Node, test: impl FnOnce(&Gpus, &Directory) -> Result<(), Failed>) {
    let run = || {
        let _turn = Turn::take()?;
        let gpus = Gpus::start(node)?;
        Directory::new(name)?.run(|directory| test(&gpus, directory))
    };
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}

/// The digest that a heat program prints.
fn heat(
    gpus: &Gpus,
    directory: &Directory,
    program: &str,
    ranks: u32,
    size: [&str; 3],
) -> Result<String, Failed> {
    let program = Program::named(Kind::Gpu, program)?.build()?;
    let mut command = job::mpirun(ranks);
    command.arg(program).args(size);
    gpus.reach(&mut command)?;
    let job = Job::start(command, directory)?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "{}", ended.show());
    let digest = ended
        .stdout
        .lines()
        .find(|line| line.starts_with("digest "));
    let digest = digest.ok_or_else(|| format!("no digest: {}", ended.show()))?;
    Ok(digest.to_owned())
}

#[test]
fn the_field_is_the_same_however_it_is_shared() {
    tested("gpu-heat", &Node::of(2, MEMORY), |gpus, directory| {
        let size = ["60", "50", "40"];
        let alone = heat(gpus, directory, "heat", 1, size)?;
        for (program, ranks) in [("heat", 2), ("heat", 4), ("heat", 4), ("heat_cudarc", 4)] {
            let digest = heat(gpus, directory, program, ranks, size)?;
            ensure!(
                digest == alone,
                "{digest} with {program} on {ranks} ranks, {alone} on one"
            );
        }
        Ok(())
    });
}

#[test]
fn each_call_answers_as_it_must() {
    tested("gpu-calls", &Node::of(2, MEMORY), |gpus, directory| {
        let mut command = Command::new(Program::named(Kind::Gpu, "calls")?.build()?);
        gpus.reach(&mut command)?;
        let answer = command::run(command, directory, PATIENCE)?.expect(0)?;
        ensure!(answer.stdout == "OK 0\n", "{}", answer.show());
        Ok(())
    });
}

/// A process that has memory on all devices and goes on changing it.
struct Holder<'a> {
    gpus: &'a Gpus,
    directory: &'a Directory,
    job: Job,
}

impl<'a> Holder<'a> {
    fn start(gpus: &'a Gpus, directory: &'a Directory) -> Result<Holder<'a>, Failed> {
        let mut command = Command::new(Program::named(Kind::Gpu, "holder")?.build()?);
        command
            .arg(HELD.to_string())
            .env("TRIAL_DIR", directory.path());
        gpus.reach(&mut command)?;
        let mut job = Job::start(command, directory)?;
        let ready = directory.file("ready.0");
        job.until("ready", PATIENCE, |_| ready.exists())?;
        Ok(Holder {
            gpus,
            directory,
            job,
        })
    }

    /// What another process's driver says to some commands: all of its lines.
    fn asked(&self, commands: &[&str]) -> Result<Vec<String>, Failed> {
        self.asked_of(self.gpus, commands)
    }

    /// The same with the devices of another folder.
    fn asked_of(&self, gpus: &Gpus, commands: &[&str]) -> Result<Vec<String>, Failed> {
        let mut command = Command::new(Program::named(Kind::Gpu, "checkpointer")?.build()?);
        command.arg(self.job.id().to_string()).args(commands);
        gpus.reach(&mut command)?;
        let answer = command::run(command, self.directory, PATIENCE)?;
        ensure!(matches!(answer.status, 0 | 1), "{}", answer.show());
        Ok(answer.stdout.lines().map(str::to_owned).collect())
    }

    /// Lets it come to its end, which must be good.
    fn ends_well(self) -> Result<(), Failed> {
        let go = self.directory.file("go");
        fs::write(&go, "").map_err(|error| format!("{}: {error}", go.display()))?;
        let ended = self.job.end(PATIENCE)?;
        ensure!(ended.stdout == "OK 0\n", "{}", ended.show());
        Ok(())
    }

    /// Lines of what it has open or mapped that speak of a device.
    fn of_devices(&self) -> Result<Vec<String>, Failed> {
        let process = format!("/proc/{}", self.job.id());
        let wrong = |error: std::io::Error| format!("{process}: {error}");
        let maps = fs::read_to_string(format!("{process}/maps")).map_err(wrong)?;
        let mut found: Vec<String> = maps.lines().map(str::to_owned).collect();
        for entry in fs::read_dir(format!("{process}/fd"))
            .map_err(wrong)?
            .flatten()
        {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            found.push(target.display().to_string());
        }
        found.retain(|line| line.contains("/dev/nvidia"));
        Ok(found)
    }
}

fn held(
    name: &str,
    node: &Node,
    test: impl FnOnce(&Gpus, &Directory, Holder) -> Result<(), Failed>,
) {
    tested(name, node, |gpus, directory| {
        test(gpus, directory, Holder::start(gpus, directory)?)
    });
}

/// Fails unless lines are as they must be.
fn same(lines: &[String], right: &[&str]) -> Result<(), Failed> {
    ensure!(lines == right, "{lines:#?} and not {right:#?}");
    Ok(())
}

#[test]
fn a_checkpoint_leaves_nothing_of_the_devices() {
    held("gpu-host", &Node::of(2, MEMORY), |_, _, holder| {
        ensure!(
            holder.of_devices()?.len() >= 4,
            "it has only {:#?}",
            holder.of_devices()?
        );
        for _ in 0..3 {
            let steps = [
                "state",
                "thread",
                "lock=5000",
                "state",
                "checkpoint",
                "state",
            ];
            same(
                &holder.asked(&steps)?,
                &[
                    "state is 0",
                    "state: CUDA_SUCCESS",
                    "thread is cuda-EvtHandlr",
                    "thread: CUDA_SUCCESS",
                    "lock: CUDA_SUCCESS",
                    "state is 1",
                    "state: CUDA_SUCCESS",
                    "checkpoint: CUDA_SUCCESS",
                    "state is 2",
                    "state: CUDA_SUCCESS",
                ],
            )?;
            let left = holder.of_devices()?;
            ensure!(left.is_empty(), "it still has {left:#?}");
            let free = format!("free are {MEMORY}");
            same(
                &holder.asked(&["free=0", "restore", "unlock", "state"])?,
                &[
                    &free,
                    "free: CUDA_SUCCESS",
                    "restore: CUDA_SUCCESS",
                    "unlock: CUDA_SUCCESS",
                    "state is 0",
                    "state: CUDA_SUCCESS",
                ],
            )?;
        }
        holder.ends_well()
    });
}

#[test]
fn each_state_allows_what_it_must() {
    held("gpu-states", &Node::of(1, MEMORY), |_, _, holder| {
        let refused = |commands: &[&str]| -> Result<(), Failed> {
            for command in commands {
                let said = holder.asked(&[command])?;
                let right = format!("{command}: CUDA_ERROR_ILLEGAL_STATE");
                ensure!(said == [right], "{said:?}");
            }
            Ok(())
        };
        let does = |command: &str| {
            let said = holder.asked(&[command])?;
            ensure!(said == [format!("{command}: CUDA_SUCCESS")], "{said:?}");
            Ok(())
        };
        refused(&["checkpoint", "restore", "unlock"])?;
        does("lock")?;
        refused(&["lock", "restore"])?;
        does("checkpoint")?;
        refused(&["lock", "checkpoint", "unlock"])?;
        does("restore")?;
        refused(&["lock", "restore"])?;
        does("unlock")?;
        holder.ends_well()
    });
}
