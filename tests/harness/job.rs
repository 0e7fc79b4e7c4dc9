//! One `mpirun`, from its start to its end. No process of the job outlives the test, even if the test fails.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::{self, Directory};
use crate::{Failed, command, ensure, interrupt};

/// A variable in every process of a job, with a value of the job's own, by which its processes can be found and ended.
const MARK: &str = "STILLPOINT_TEST_JOB";

/// A running job.
#[derive(Debug)]
pub struct Job {
    text: String,
    mark: String,
    child: Child,
    ended: Option<ExitStatus>,
    stdout: PathBuf,
    stderr: PathBuf,
    started: Instant,
}

/// The end of a job.
#[derive(Clone, Debug)]
pub struct Ended {
    pub command: String,
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Shows everything, for a failure's text.
    pub fn show(&self) -> String {
        format!(
            "`{}` ended with {}\n--- stdout\n{}--- stderr\n{}",
            self.command, self.status, self.stdout, self.stderr
        )
    }
}

/// Makes `mpirun -n RANKS`, prepared for machines with fewer cores than ranks, and for root.
pub fn mpirun(ranks: u32) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        // Otherwise every launch would wait 0.2 s for network cards that are only of use between machines.
        .env("OMPI_MCA_pml", "^cm")
        // Several jobs share the cores, so the kernel places them.
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMP_NUM_THREADS", "1")
        // The tests may be a batch job themselves.
        .env("STILLPOINT_SUSPENDED_STATUS", "0")
        .env_remove("STILLPOINT_DIR");
    command
}

/// Makes `mpirun -n RANKS stillpoint run --dir DIR -- PROGRAM...`, without the program.
pub fn under_stillpoint(ranks: u32, target: &Path) -> Result<Command, Failed> {
    let mut command = mpirun(ranks);
    command.arg(place::stillpoint()?).args([
        OsStr::new("run"),
        OsStr::new("--dir"),
        target.as_os_str(),
    ]);
    command.arg("--");
    Ok(command)
}

/// Makes `mpirun -n RANKS stillpoint restart DIR`.
pub fn restarted(ranks: u32, target: &Path) -> Result<Command, Failed> {
    let mut command = mpirun(ranks);
    command
        .arg(place::stillpoint()?)
        .args([OsStr::new("restart"), target.as_os_str()]);
    Ok(command)
}

impl Job {
    /// Starts `command`; its output goes to files in `directory`.
    pub fn start(mut command: Command, directory: &Directory) -> Result<Job, Failed> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        interrupt::expect();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let text = command::describe(&command);
        let mark = format!("{}-{count}", std::process::id());
        let (stdout, stderr) = (
            directory.file(&format!("job-{count}.out")),
            directory.file(&format!("job-{count}.err")),
        );
        let make = |path: &Path| {
            File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        command
            .stdin(Stdio::null())
            .stdout(make(&stdout)?)
            .stderr(make(&stderr)?)
            .env(MARK, &mark);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start `{text}`: {error}"))?;
        Ok(Job {
            text,
            mark,
            child,
            ended: None,
            stdout,
            stderr,
            started: Instant::now(),
        })
    }

    /// Tells whether the job still runs.
    pub fn runs(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_none()
    }

    /// Returns its stdout so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stdout).unwrap_or_default()).into_owned()
    }

    /// Returns its stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap_or_default()).into_owned()
    }

    fn show(&self) -> String {
        format!(
            "`{}` after {:.1} s\n--- stdout\n{}--- stderr\n{}",
            self.text,
            self.started.elapsed().as_secs_f64(),
            self.stdout(),
            self.stderr()
        )
    }

    /// Waits until `done` holds; fails when the job ends first or `longest` has passed.
    pub fn until(
        &mut self,
        what: &str,
        longest: Duration,
        mut done: impl FnMut(&Job) -> bool,
    ) -> Result<(), Failed> {
        let started = Instant::now();
        loop {
            let runs = self.runs();
            if done(self) {
                return Ok(());
            }
            ensure!(
                runs,
                "ended ({:?}) before it was {what}: {}",
                self.ended,
                self.show()
            );
            ensure!(
                started.elapsed() < longest,
                "never was {what}: {}",
                self.show()
            );
            ensure!(
                !interrupt::seen(),
                "interrupted before it was {what}: {}",
                self.show()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the started process has ended. Other processes of the job stay until this is dropped.
    pub fn until_over(&mut self, longest: Duration) -> Result<(), Failed> {
        let started = Instant::now();
        while self.runs() {
            ensure!(started.elapsed() < longest, "does not end: {}", self.show());
            ensure!(
                !interrupt::seen(),
                "interrupted before its end: {}",
                self.show()
            );
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits for the end of the job.
    pub fn end(mut self, longest: Duration) -> Result<Ended, Failed> {
        let started = Instant::now();
        while self.runs() {
            ensure!(started.elapsed() < longest, "does not end: {}", self.show());
            ensure!(
                !interrupt::seen(),
                "interrupted before its end: {}",
                self.show()
            );
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.ended.and_then(|status| status.code()).unwrap_or(-1);
        Ok(Ended {
            command: self.text.clone(),
            status,
            stdout: self.stdout(),
            stderr: self.stderr(),
        })
    }

    /// Returns the id of the started process, which is `mpirun`'s if the job has several.
    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// Returns the ids of the job's processes, except for `mpirun` itself, whose executable's or argument's name ends
    /// with `name`.
    pub fn processes(&self, name: &str) -> Vec<i32> {
        marked(&self.mark)
            .into_iter()
            .filter(|pid| *pid != self.child.id() as i32 && is_called(*pid, name))
            .collect()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // `mpirun` ends its ranks on request; remaining processes are ended by their ids.
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            let asked = Instant::now();
            while self.runs() && asked.elapsed() < Duration::from_secs(3) {
                thread::sleep(Duration::from_millis(10));
            }
            if self.ended.is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
        for pid in marked(&self.mark) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Returns the processes that were started with a job's mark.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

fn is_called(pid: i32, name: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(first).ends_with(name)
}
