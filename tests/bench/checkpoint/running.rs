//! A job to be measured.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::{Failed, ensure};

pub const RANKS: u32 = 2;
/// The longest time for any step.
const PATIENCE: Duration = Duration::from_secs(300);

/// The medium for epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Disk,
    Memory,
}

impl Medium {
    pub const BOTH: [Medium; 2] = [Medium::Disk, Medium::Memory];

    pub const fn name(self) -> &'static str {
        match self {
            Medium::Disk => "disk",
            Medium::Memory => "tmpfs",
        }
    }

    /// Makes a new directory on the medium, which goes with the returned value.
    pub fn directory(self, name: &str) -> Result<Scratch, Failed> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let above = match self {
            Medium::Disk => place::target().join("bench"),
            Medium::Memory => PathBuf::from("/dev/shm"),
        };
        let path = above.join(format!(
            "stillpoint-bench-{name}-{}-{count}",
            std::process::id()
        ));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }
}

/// A temporary directory.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The user can remove the rest.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A job under `stillpoint run`, or natively.
pub struct Running {
    ranks: u32,
    job: Option<Job>,
    directory: Directory,
    epochs: Scratch,
}

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

impl Running {
    /// Starts `program` with arguments, under `run` with options `how`, with its epochs on that medium, and waits until it is
    /// ready.
    pub fn start(
        medium: Medium,
        how: &[&str],
        program: &Path,
        told: &[&str],
    ) -> Result<Running, Failed> {
        Running::start_of(RANKS, medium, how, program, told)
    }

    /// Does the same with so many ranks.
    pub fn start_of(
        ranks: u32,
        medium: Medium,
        how: &[&str],
        program: &Path,
        told: &[&str],
    ) -> Result<Running, Failed> {
        let mut running = Running::begin_of(ranks, medium, how, program, told)?;
        running.wait("ready", |directory| {
            (0..ranks).all(|rank| directory.file(&format!("ready.{rank}")).exists())
        })?;
        Ok(running)
    }

    /// Does the same for a program that does not report that it is ready.
    pub fn begin(
        medium: Medium,
        how: &[&str],
        program: &Path,
        told: &[&str],
    ) -> Result<Running, Failed> {
        Running::begin_of(RANKS, medium, how, program, told)
    }

    fn begin_of(
        ranks: u32,
        medium: Medium,
        how: &[&str],
        program: &Path,
        told: &[&str],
    ) -> Result<Running, Failed> {
        let directory = Directory::new("bench")?;
        let epochs = medium.directory("epochs")?;
        let mut command = job::mpirun(ranks);
        command.arg(place::stillpoint()?).arg("run").args(how);
        command.arg("--dir").arg(epochs.path().join("d"));
        command.arg("--").arg(program).args(arguments(told));
        let mut running = Running {
            ranks,
            job: None,
            directory,
            epochs,
        };
        running.launch(command)?;
        Ok(running)
    }

    fn launch(&mut self, mut command: Command) -> Result<(), Failed> {
        command
            .env("TRIAL_DIR", self.directory.path())
            .current_dir(self.directory.path());
        self.job = Some(Job::start(command, &self.directory)?);
        Ok(())
    }

    /// Returns the path of a file in the job's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    /// Returns the checkpoint directory.
    pub fn target(&self) -> PathBuf {
        self.epochs.path().join("d")
    }

    /// Returns the images of the newest epoch.
    pub fn images(&self) -> Vec<PathBuf> {
        self.images_of(command::epochs(&self.target()).pop().unwrap_or_default())
    }

    fn images_of(&self, epoch: u64) -> Vec<PathBuf> {
        let epoch = self.target().join(format!("epoch-{epoch:06}"));
        let image = |rank: u32| epoch.join(format!("rank-{rank:06}.img"));
        (0..self.ranks).map(image).collect()
    }

    /// Waits until the job has done something.
    pub fn wait(&mut self, what: &str, done: impl Fn(&Directory) -> bool) -> Result<(), Failed> {
        let directory = &self.directory;
        match &mut self.job {
            Some(job) => job.until(what, PATIENCE, |_| done(directory)),
            None => Err("it does not run".to_owned()),
        }
    }

    fn ask(&self, word: &str) -> Result<Value, Failed> {
        let mut command = Command::new(place::stillpoint()?);
        command.args([OsStr::new(word), self.target().as_os_str()]);
        command.arg("--json").env_remove("STILLPOINT_DIR");
        let answer = command::run(command, &self.directory, PATIENCE)?;
        answer.expect(exit::DONE)?.json()
    }

    pub fn checkpoint(&self) -> Result<Value, Failed> {
        self.ask("checkpoint")
    }

    pub fn suspend(&mut self) -> Result<Value, Failed> {
        let said = self.ask("suspend")?;
        self.is_over()?;
        Ok(said)
    }

    fn is_over(&mut self) -> Result<(), Failed> {
        let ended = match self.job.take() {
            Some(job) => job.end(PATIENCE)?,
            None => return Ok(()),
        };
        ensure!(ended.status == 0, "{}", ended.show());
        Ok(())
    }

    /// Asks the program for its action, and waits until every rank has done it.
    pub fn ask_program(&mut self) -> Result<(), Failed> {
        self.put("ask")?;
        self.answered()
    }

    fn answered(&mut self) -> Result<(), Failed> {
        let answers: Vec<String> = (0..self.ranks)
            .map(|rank| format!("answer.{rank}"))
            .collect();
        self.wait("asked", |directory| {
            answers.iter().all(|name| directory.file(name).exists())
        })?;
        for name in answers.iter().map(String::as_str).chain(["ask"]) {
            let path = self.directory.file(name);
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Returns the time from the start of `restart` until the program of every rank has looked at a file.
    pub fn restart(&mut self, how: &[&str]) -> Result<Duration, Failed> {
        self.put("ask")?;
        let mut command = job::restarted(self.ranks, &self.target())?;
        command.args(how);
        let began = Instant::now();
        self.launch(command)?;
        let answers: Vec<PathBuf> = (0..self.ranks)
            .map(|rank| self.file(&format!("answer.{rank}")))
            .collect();
        self.wait("running again", |_| {
            answers.iter().all(|path| path.exists())
        })?;
        let took = began.elapsed();
        self.answered()?;
        Ok(took)
    }

    /// Drops the epochs from the page cache, if they are on a disk.
    pub fn forget(&self) -> Result<(), Failed> {
        for epoch in command::epochs(&self.target()) {
            for image in self.images_of(epoch) {
                let failed = |error| format!("{}: {error}", image.display());
                let file = fs::File::open(&image).map_err(failed)?;
                let unneeded = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
                posix_fadvise(&file, 0, 0, unneeded).map_err(|error| failed(error.into()))?;
            }
        }
        Ok(())
    }

    fn put(&self, name: &str) -> Result<(), Failed> {
        let path = self.file(name);
        fs::write(&path, b"").map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Lets the job come to its end.
    pub fn end(mut self) -> Result<(), Failed> {
        self.put("go")?;
        self.is_over()
    }

    /// Returns the ends of loop laps, in seconds since 1970, and their durations, for all ranks.
    pub fn laps(&self) -> Vec<(f64, f64)> {
        (0..self.ranks)
            .flat_map(|rank| self.laps_of(rank))
            .collect()
    }

    /// Returns the same for one rank.
    pub fn laps_of(&self, rank: u32) -> Vec<(f64, f64)> {
        let text = fs::read_to_string(self.file(&format!("laps.{rank}"))).unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let (end, took) = line.split_once(' ')?;
                Some((end.parse().ok()?, took.parse().ok()?))
            })
            .collect()
    }
}

/// Returns the seconds since 1970.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

pub fn pause(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// Returns a figure of the output of `--json`.
pub fn figure(said: &Value, name: &str) -> Result<f64, Failed> {
    let value = said.pointer(&format!("/{}", name.replace('.', "/")));
    value
        .and_then(Value::as_f64)
        .ok_or_else(|| format!("no {name} in {said}"))
}
