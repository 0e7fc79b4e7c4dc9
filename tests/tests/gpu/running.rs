//! A program of two ranks that reports its progress by files, and learns by files how far it may go.

use std::fs;
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure, strike};

use crate::heat::{self, PATIENCE};

const RANKS: u32 = 2;

/// The program, with its argument, on a node.
pub struct Running<'a> {
    pub gpus: Gpus,
    pub directory: &'a Directory,
    program: &'a str,
    kind: &'a str,
}

/// Gives a test a program on a node.
pub fn on(
    node: &Node,
    (program, kind): (&str, &str),
    test: impl FnOnce(&Running) -> Result<(), Failed>,
) {
    let tested = (|| {
        Directory::new("gpu-running")?.run(|directory| {
            test(&Running {
                gpus: Gpus::start(node)?,
                directory,
                program,
                kind,
            })
        })
    })();
    if let Err(failed) = tested {
        panic!("{program} {kind}: {failed}");
    }
}

impl Running<'_> {
    /// Waits until every rank has made a mark.
    pub fn wait(&self, job: &mut Job, mark: &str) -> Result<(), Failed> {
        let there = |rank: u32| self.directory.file(&format!("{mark}.{rank}")).exists();
        job.until(mark, PATIENCE, |_| (0..RANKS).all(there))
    }

    /// Gives the ranks a word.
    pub fn tell(&self, what: &str) -> Result<(), Failed> {
        let file = self.directory.file(what);
        fs::write(&file, "").map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Removes a file.
    pub fn forget(&self, name: &str) -> Result<(), Failed> {
        let file = self.directory.file(name);
        fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Removes a mark of every rank.
    pub fn forget_mark(&self, mark: &str) -> Result<(), Failed> {
        (0..RANKS).try_for_each(|rank| self.forget(&format!("{mark}.{rank}")))
    }

    pub fn natively(&self) -> Result<Job, Failed> {
        self.launch(job::mpirun(RANKS))
    }

    /// Starts the program under Stillpoint, with an option.
    pub fn start(&self, option: &str) -> Result<Job, Failed> {
        let mut command = job::mpirun(RANKS);
        command.arg(place::stillpoint()?);
        command.args(["run", option, "--dir"]);
        command.arg(self.directory.epochs()).arg("--");
        self.launch(command)
    }

    fn launch(&self, mut command: Command) -> Result<Job, Failed> {
        command.arg(Program::named(Kind::Gpu, self.program)?.build()?);
        command
            .arg(self.kind)
            .env("TRIAL_DIR", self.directory.path());
        self.gpus.reach(&mut command)?;
        let mut job = Job::start(command, self.directory)?;
        self.wait(&mut job, "ready")?;
        Ok(job)
    }

    pub fn ask(&self, what: &str) -> Result<command::Answer, Failed> {
        heat::ask(what, self.directory, self.directory.epochs())
    }

    /// Suspends and restarts the program.
    pub fn moved(&self, job: Job) -> Result<Job, Failed> {
        self.ask("suspend")?.expect(exit::DONE)?;
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

    /// Lets the program come to its end, which must be right.
    pub fn ends_well(&self, job: Job) -> Result<Ended, Failed> {
        self.tell("go")?;
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
