//! Heat on a plate, on the GPUs of an emulated node: the result under Stillpoint must equal the native one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::gpu::{self, Gpus, Node};
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::kept::Kept;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure, strike};

pub const PATIENCE: Duration = Duration::from_secs(200);

/// The steps of the longest run in these tests.
pub const LONG: u32 = 900;

/// A plate, and the node whose GPUs compute it.
pub struct Heat<'a> {
    pub directory: &'a Directory,
    pub gpus: Gpus,
    pub ranks: u32,
    executable: PathBuf,
    steps: u32,
    /// MiB of each rank that are not written to again.
    pub idle: u32,
}

/// Gives a test a plate on a node.
pub fn on(node: &Node, ranks: u32, steps: u32, test: impl FnOnce(&mut Heat) -> Result<(), Failed>) {
    on_with("heat", node, ranks, steps, test);
}

/// Does the same with another program for it.
pub fn on_with(
    program: &str,
    node: &Node,
    ranks: u32,
    steps: u32,
    test: impl FnOnce(&mut Heat) -> Result<(), Failed>,
) {
    let tested = (|| {
        let executable = Program::named(Kind::Gpu, program)?.build()?;
        Directory::new("gpu")?.run(|directory| {
            test(&mut Heat {
                directory,
                gpus: Gpus::start(node)?,
                ranks,
                executable,
                steps,
                idle: 0,
            })
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Runs `stillpoint checkpoint DIR` or `suspend`. It waits for hindrances to pass, as users do by default: on a busy machine a lock of the devices may time
/// out.
pub fn ask(what: &str, directory: &Directory, target: &Path) -> Result<Answer, Failed> {
    let mut command = Command::new(place::stillpoint()?);
    command.args([what, "--timeout", "150"]).arg(target);
    command.env_remove("STILLPOINT_DIR");
    command::run(command, directory, PATIENCE)
}

/// Makes a node of so many equal GPUs.
pub fn node(devices: u32) -> Node {
    Node::of(devices, 1 << 30)
}

impl Heat<'_> {
    pub fn target(&self) -> &Path {
        self.directory.epochs()
    }

    fn with_program(&self, mut command: Command) -> Command {
        command.arg(&self.executable).args(["400", "300"]);
        command
            .arg(self.steps.to_string())
            .arg(self.idle.to_string());
        command
    }

    /// Returns the native result. Many tests have the same plate, so it is computed once, and again when any of its inputs changes.
    pub fn natively(&self) -> Result<String, Failed> {
        let mut command = self.with_program(job::mpirun(self.ranks));
        let program = self.executable.file_name().unwrap_or_default();
        let plate = format!(
            "{}-{}-{}-{}",
            program.to_string_lossy(),
            self.ranks,
            self.steps,
            self.idle
        );
        let devices = &self.gpus;
        let kept = Kept::named(&plate)
            .on_program(&self.executable)?
            .on(&command::describe(&command))
            .on_file(&place::binaries().join("emulated-gpu"))?
            .on_file(&gpu::driver()?.join("libcuda.so.1"))?
            .on(concat!(
                include_str!("heat.rs"),
                include_str!("../../harness/job.rs")
            ));
        kept.text(|| {
            devices.reach(&mut command)?;
            let ended = Job::start(command, self.directory)?.end(PATIENCE)?;
            digest(&ended)
        })
    }

    /// Starts the job under Stillpoint with options of `run`, and waits until it computes.
    pub fn start(&self, options: &[&str]) -> Result<Job, Failed> {
        self.start_with(options, &[])
    }

    pub fn start_with(&self, options: &[&str], variables: &[(&str, &str)]) -> Result<Job, Failed> {
        let mut command = job::mpirun(self.ranks);
        command.arg(place::stillpoint()?).arg("run").arg("--dir");
        command.arg(self.target()).args(options).arg("--");
        let mut command = self.with_program(command);
        command.env("TRIAL_DIR", self.directory.path());
        command.envs(variables.iter().copied());
        self.gpus.reach(&mut command)?;
        let mut job = Job::start(command, self.directory)?;
        let ready = |rank: u32| self.directory.file(&format!("ready.{rank}")).exists();
        job.until("computing", PATIENCE, |_| (0..self.ranks).all(ready))?;
        Ok(job)
    }

    /// Starts the job again from its newest epoch.
    pub fn restart(&self, variables: &[(&str, &str)]) -> Result<Job, Failed> {
        self.restart_with(&[], variables)
    }

    pub fn restart_with(
        &self,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Job, Failed> {
        let mut command = job::restarted(self.ranks, self.target())?;
        command.args(options);
        self.gpus.reach(&mut command)?;
        command.envs(variables.iter().copied());
        Job::start(command, self.directory)
    }

    /// Starts the job again, and waits until it runs.
    pub fn restarted(&self) -> Result<Job, Failed> {
        self.restarted_with(&[], &[])
    }

    pub fn restarted_with(
        &self,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Job, Failed> {
        let before = self.launch();
        let mut job = self.restart_with(options, variables)?;
        job.until("running", PATIENCE, |_| {
            let said = strike::job_file(self.target()).unwrap_or_default();
            let ranks = said["processes"].as_array().map_or(0, Vec::len);
            said["state"] == "running" && said["launch"] != before && ranks == self.ranks as usize
        })?;
        Ok(job)
    }

    fn launch(&self) -> String {
        let said = strike::job_file(self.target()).unwrap_or_default();
        said["launch"].as_str().unwrap_or_default().to_owned()
    }

    pub fn checkpoint(&self) -> Result<Answer, Failed> {
        ask("checkpoint", self.directory, self.target())
    }

    /// Suspends the job, which must end well.
    pub fn suspend(&self, job: Job) -> Result<(), Failed> {
        ask("suspend", self.directory, self.target())?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        Ok(())
    }

    /// Lets the ranks go on to their end.
    pub fn let_go(&self) -> Result<(), Failed> {
        let go = self.directory.file("go");
        std::fs::write(&go, "").map_err(|error| format!("{}: {error}", go.display()))
    }

    /// Makes ranks that start from now on wait again.
    pub fn hold_back(&self) -> Result<(), Failed> {
        let go = self.directory.file("go");
        std::fs::remove_file(&go).map_err(|error| format!("{}: {error}", go.display()))
    }

    /// Lets the job come to its end, and compares the result.
    pub fn ends_as(&self, job: Job, natively: &str) -> Result<(), Failed> {
        self.let_go()?;
        let ended = job.end(PATIENCE)?;
        let found = digest(&ended)?;
        ensure!(found == natively, "not {natively}: {}", ended.show());
        Ok(())
    }

    /// Waits until no rank computes before it is let go, so that later faults of the devices strike only the checkpoint.
    pub fn waits(&self, job: &mut Job) -> Result<(), Failed> {
        let waits = |rank: u32| self.directory.file(&format!("waits.{rank}")).exists();
        job.until("waiting", PATIENCE, |_| (0..self.ranks).all(waits))
    }

    /// Waits until every rank has come out of the last checkpoint. The epoch is reported before its devices work again.
    pub fn idle(&self, job: &mut Job) -> Result<(), Failed> {
        let target = self.target().display().to_string();
        job.until("idle", PATIENCE, |_| {
            // The command takes processor time from the job.
            thread::sleep(Duration::from_millis(20));
            let shown = command::stillpoint(self.directory, ["status", &target, "--json"]);
            let shown = shown.and_then(|answer| answer.json());
            shown.is_ok_and(|shown| shown["live"].is_object() && shown["live"]["phase"].is_null())
        })
    }

    /// Returns the helpers of the job on this node.
    pub fn helpers(&self, job: &Job) -> Vec<i32> {
        job.processes("stillpoint-gpu")
    }

    /// Ends a helper as a crash would.
    pub fn end_helper(&self, job: &Job) -> Result<(), Failed> {
        let helpers = self.helpers(job);
        let [helper] = helpers.as_slice() else {
            return Err(format!("one helper serves the node, not {helpers:?}"));
        };
        strike::signal(*helper, Signal::SIGKILL)
    }
}

/// Returns the line that rank 0 prints.
fn digest(ended: &Ended) -> Result<String, Failed> {
    ensure!(ended.status == 0, "{}", ended.show());
    result(ended).ok_or_else(|| format!("no digest: {}", ended.show()))
}

fn result(ended: &Ended) -> Option<String> {
    let mut lines = ended.stdout.lines();
    let line = lines.find(|line| line.starts_with("digest"))?;
    Some(line.to_owned())
}
