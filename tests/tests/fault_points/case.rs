//! A copy of a suspended job's directory, and the jobs that start from it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stillpoint_faults::{MARK, Point, Process, VARIABLE};
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::kept::Kept;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, reason, strike};

pub const PATIENCE: Duration = Duration::from_secs(60);
/// The longest delay of stderr lines, which come through `mpirun`.
const SAID: Duration = Duration::from_secs(5);
/// The leftover of an old unfinished checkpoint.
const STALE: &str = "epoch-000001.deadbeef.part";
/// The epochs in the template's folder.
const EPOCHS: &str = "epochs";

/// Gives a directory the epochs of a suspended job, in the same state for all tests. The job is suspended once for all of them.
fn copy_template(program: &Program, to: &Path) -> Result<(), Failed> {
    let mut kept = Kept::named("fault-points").on_program(&program.build()?)?;
    for name in [
        "stillpoint",
        "stillpoint-lower-openmpi",
        "libstillpoint_upper_openmpi.so",
        "libstillpoint_preload.so",
    ] {
        kept = kept.on_file(&place::binaries().join(name))?;
    }
    kept.folder(
        |folder| make_template(program, folder),
        |folder| copy(&folder.join(EPOCHS), to),
    )
}

fn make_template(program: &Program, folder: &Path) -> Result<(), Failed> {
    // The job's working directory must exist when a copy of the job is restarted.
    let directory = Directory::staying(folder.join("job"))?;
    let trial = Trial::new(program, 2, &directory)?;
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    trial.suspended(job)?;
    // The file may exist from the start, since a signal ends the copies.
    trial.go()?;
    let failed = |error: std::io::Error| error.to_string();
    let epochs = folder.join(EPOCHS);
    copy(directory.epochs(), &epochs)?;
    fs::remove_dir_all(directory.epochs()).map_err(failed)?;
    let stale = epochs.join(STALE);
    fs::create_dir(&stale).map_err(failed)?;
    fs::write(stale.join("rank-000000.img"), b"half").map_err(failed)
}

/// Far below the speed of memory and of this host's sockets.
const PACE: &str = "40MB/s";

/// The way to start a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    Plainly,
    OnTiers,
    /// Before all memory has been read.
    Lazily,
}

/// One point, and a copy to try it on.
pub struct Case<'a> {
    pub point: Point,
    /// The pass at which the point is struck.
    pub pass: u32,
    pub trial: Trial<'a>,
}

/// A running job, and the number of earlier strikes.
pub struct Running {
    pub job: Job,
    /// The number of strikes in the log when the job started.
    logged: usize,
}

impl Case<'_> {
    pub fn on_a_copy(
        name: &str,
        point: Point,
        pass: u32,
        test: impl FnOnce(&Case) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let program = Program::named(Kind::Special, "struck_again_and_again")?;
        Directory::new(name)?.run(|directory| {
            copy_template(&program, directory.epochs())?;
            test(&Case {
                point,
                pass,
                trial: Trial::new(&program, 2, directory)?,
            })
        })
    }

    /// Returns the fault entry that strikes at the point. The points before it fail first.
    pub fn fault(&self, action: &str) -> String {
        let entry = |point: Point, pass: u32, action: &str| {
            let name = point.name();
            match point.process() {
                // The rank alternates, so that it is not always the one that does more.
                Process::Rank => format!("{name}@{pass}:{}:{action}", self.rank()),
                Process::Coordinator | Process::Launcher => format!("{name}@{pass}:{action}"),
            }
        };
        let before = self.point.after().iter();
        let before = before.map(|before| entry(*before, 1, "fail"));
        let own = entry(self.point, self.pass, action);
        before.chain([own]).collect::<Vec<_>>().join(",")
    }

    fn rank(&self) -> u16 {
        self.point.number() % 2
    }

    /// Tells whether the job goes on without the process of the point.
    pub fn is_the_coordinators(&self) -> bool {
        self.point.process() == Process::Coordinator
    }

    /// Starts the copy again with faults.
    pub fn launch(&self, faults: &str, how: How) -> Result<Running, Failed> {
        let target = self.trial.epochs_at();
        let mut command = job::restarted(2, &target)?;
        if how == How::Lazily {
            command.arg("--lazy");
        }
        if how == How::OnTiers {
            // All ways are equally fast, whatever is measured. So the plan uses each of them, and all points are passed.
            let fast = self.trial.directory.file("fast.%r");
            let (fast, slow) = (fast.display(), target.display());
            command.arg(format!("--tier=fast={fast},capacity=4M,limit={PACE}"));
            command.arg(format!("--tier=slow={slow},limit={PACE}"));
            command.arg(format!("--peer-limit={PACE}"));
            command.arg("--redundancy=partner");
        }
        command.env("STILLPOINT_KEEP", "1").env(VARIABLE, faults);
        let logged = self.logged();
        let job = self.trial.launch(command)?;
        Ok(Running { job, logged })
    }

    /// Waits until both ranks belong to a job that has begun after `before`.
    pub fn until_it_runs(&self, running: &mut Running, before: &str) -> Result<(), Failed> {
        let target = self.trial.epochs_at();
        running.job.until("running", PATIENCE, |_| {
            let said = strike::job_file(&target).unwrap_or_default();
            let ranks = said["processes"].as_array().map_or(0, Vec::len);
            said["state"] == "running" && said["launch"] != before && ranks == 2
        })
    }

    /// Starts the copy again and waits until it runs.
    pub fn start(&self, faults: &str, how: How) -> Result<Running, Failed> {
        let before = self.launch_name();
        let mut running = self.launch(faults, how)?;
        self.until_it_runs(&mut running, &before)?;
        Ok(running)
    }

    pub fn launch_name(&self) -> String {
        let said = strike::job_file(&self.trial.epochs_at()).unwrap_or_default();
        said["launch"].as_str().unwrap_or_default().to_owned()
    }

    pub fn newest(&self) -> u64 {
        let epochs = command::epochs(&self.trial.epochs_at());
        epochs.last().copied().unwrap_or_default()
    }

    pub fn checkpoint(&self) -> Result<Answer, Failed> {
        command::checkpoint(self.trial.directory, &self.trial.epochs_at())
    }

    fn log(&self) -> String {
        let path = self.trial.epochs_at().join("coordinator.log");
        fs::read_to_string(path).unwrap_or_default()
    }

    fn logged(&self) -> usize {
        strikes(&self.log(), self.point)
    }

    /// Counts how often the point has been struck since the job started, as far as messages have arrived.
    fn strikes(&self, running: &Running) -> usize {
        strikes(&running.job.stderr(), self.point) + self.logged() - running.logged
    }

    pub fn has_been_struck(&self, running: &Running, times: usize) -> bool {
        self.strikes(running) >= times
    }

    /// Waits until the point has been struck so many times since the job was started.
    pub fn struck(&self, running: &Running, times: usize) -> Result<(), Failed> {
        let since = Instant::now();
        while !self.has_been_struck(running, times) {
            ensure!(
                since.elapsed() < SAID,
                "nothing has passed the point (strike {times}): {}\n--- log\n{}",
                running.job.stderr(),
                self.log()
            );
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Lets a running job come to its end, which has to be the right one.
    pub fn ends_well(&self, running: Running) -> Result<Ended, Failed> {
        let mut running = running;
        let mut first = 0;
        // The restarted process may not have its handlers back yet.
        running.job.until("hearing signals", PATIENCE, |_| {
            let ranks = strike::ranks(&self.trial.epochs_at()).unwrap_or_default();
            first = ranks.first().copied().unwrap_or_default();
            catches(first, Signal::SIGUSR2)
        })?;
        strike::signal(first, Signal::SIGUSR2)?;
        self.trial.ends_well(running.job)
    }

    /// Checks that a command's answer agrees with the files, and that earlier commits are not lost.
    pub fn consistent(&self, before: u64, answer: &Answer) -> Result<(), Failed> {
        let after = self.newest();
        let show = || format!("{}\n--- log\n{}", answer.show(), self.log());
        ensure!(after >= before, "epoch {before} is lost: {}", show());
        match answer.status {
            exit::DONE => ensure!(after > before, "no epoch was committed: {}", show()),
            exit::FAILED | exit::REFUSED => reason::one(&answer.stderr, &[])
                .map_err(|failed| format!("{failed}\n{}", show()))?,
            _ => return Err(format!("an undocumented status: {}", show())),
        }
        Ok(())
    }

    /// Checks that a restart without a fault comes to the right end and leaves nothing unfinished.
    pub fn restarts_well(&self) -> Result<(), Failed> {
        let before = self.newest();
        let running = self.start("", How::Plainly)?;
        let ended = self.ends_well(running)?;
        ensure!(
            self.newest() >= before,
            "epoch {before} is lost: {}",
            ended.show()
        );
        let names = fs::read_dir(self.trial.epochs_at()).map_err(|error| error.to_string())?;
        let names = names.flatten().map(|entry| entry.file_name());
        let unfinished: Vec<_> = names
            .filter(|name| {
                let name = name.to_string_lossy();
                name.ends_with(".part") || name.ends_with(".staged")
            })
            .collect();
        ensure!(unfinished.is_empty(), "this is left: {unfinished:?}");
        Ok(())
    }
}

fn strikes(text: &str, point: Point) -> usize {
    let mark = format!("{MARK} {} {}:", point.number(), point.name());
    text.matches(&mark).count()
}

/// Tells whether a process has a handler for a signal.
fn catches(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    caught.is_some_and(|set| set >> (signal as i32 - 1) & 1 != 0)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &to)?,
            false => drop(fs::copy(&path, &to).map_err(failed)?),
        }
    }
    Ok(())
}
