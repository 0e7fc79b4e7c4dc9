//! A process with memory on the devices, and another one that sends requests to its driver.

use std::fs;
use std::process::Command;

use stillpoint_tests::command;
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::Job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure};

use super::{HELD, PATIENCE, tested};

/// A process that has memory on all devices and goes on changing it.
pub struct Holder<'a> {
    gpus: &'a Gpus,
    directory: &'a Directory,
    pub job: Job,
}

impl<'a> Holder<'a> {
    pub fn start(gpus: &'a Gpus, directory: &'a Directory) -> Result<Holder<'a>, Failed> {
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

    /// Sends commands by another process's driver, and returns all lines of the answers.
    pub fn asked(&self, commands: &[&str]) -> Result<Vec<String>, Failed> {
        self.asked_of(self.gpus, commands)
    }

    /// Does the same with the devices of another folder.
    pub fn asked_of(&self, gpus: &Gpus, commands: &[&str]) -> Result<Vec<String>, Failed> {
        let mut command = Command::new(Program::named(Kind::Gpu, "checkpointer")?.build()?);
        command.arg(self.job.id().to_string()).args(commands);
        gpus.reach(&mut command)?;
        let answer = command::run(command, self.directory, PATIENCE)?;
        ensure!(matches!(answer.status, 0 | 1), "{}", answer.show());
        Ok(answer.stdout.lines().map(str::to_owned).collect())
    }

    /// Lets the process come to its end, which must be good.
    pub fn ends_well(self) -> Result<(), Failed> {
        let go = self.directory.file("go");
        fs::write(&go, "").map_err(|error| format!("{}: {error}", go.display()))?;
        let ended = self.job.end(PATIENCE)?;
        ensure!(ended.stdout == "OK 0\n", "{}", ended.show());
        Ok(())
    }

    /// Returns lines of its open files and mappings that name a device.
    pub fn of_devices(&self) -> Result<Vec<String>, Failed> {
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

pub fn held(
    name: &str,
    node: &Node,
    test: impl FnOnce(&Gpus, &Directory, Holder) -> Result<(), Failed>,
) {
    tested(name, node, |gpus, directory| {
        test(gpus, directory, Holder::start(gpus, directory)?)
    });
}

/// Fails unless the lines are equal.
pub fn same(lines: &[String], right: &[&str]) -> Result<(), Failed> {
    ensure!(lines == right, "{lines:#?} and not {right:#?}");
    Ok(())
}
