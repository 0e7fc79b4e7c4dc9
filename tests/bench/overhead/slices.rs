//! Whole programs side by side, each running for a slice of time while the others are stopped. A disturbance of the machine then
//! affects all of them. In runs one after the other, it would affect one by chance.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stillpoint_tests::{Failed, ensure};

use crate::turns;

/// The length of a turn.
const SLICE: Duration = Duration::from_millis(100);
/// The interval at which the running job is checked.
const LOOK: Duration = Duration::from_millis(2);

/// A program, and the directory in which it runs.
pub struct Job {
    pub command: Command,
    pub directory: PathBuf,
    /// A file there in which the program reports its progress.
    pub watched: Option<&'static str>,
}

/// A job that has ended. Times count only its own turns.
pub struct Lap {
    pub whole: Duration,
    /// The lines of the watched file, with their times.
    pub lines: Vec<(String, Duration)>,
}

impl Lap {
    /// Returns the time from the first line that is a beginning to the last that is an end.
    pub fn between(
        &self,
        begins: impl Fn(&str) -> bool,
        ends: impl Fn(&str) -> bool,
    ) -> Option<Duration> {
        let (_, begun) = self.lines.iter().find(|(line, _)| begins(line))?;
        let (_, ended) = self.lines.iter().rfind(|(line, _)| ends(line))?;
        ended.checked_sub(*begun)
    }
}

/// Runs all jobs to their ends, in turns.
pub fn run(jobs: Vec<Job>) -> Result<Vec<Lap>, Failed> {
    let mut all = jobs
        .into_iter()
        .map(Running::start)
        .collect::<Result<Vec<_>, _>>()?;
    for round in 0.. {
        if all.iter().all(|job| job.over) {
            break;
        }
        for turn in turns::order(all.len(), round) {
            all[turn].go_on()?;
        }
    }
    Ok(all.iter_mut().map(Running::lap).collect())
}

/// A started job, which is stopped except during its turn.
struct Running {
    what: String,
    child: Child,
    directory: PathBuf,
    watched: Option<Watched>,
    /// All its processes, the earliest first; empty until its first turn is over.
    processes: Vec<Pid>,
    ran: Duration,
    over: bool,
    lines: Vec<(String, Duration)>,
}

impl Running {
    fn start(job: Job) -> Result<Running, Failed> {
        let Job {
            mut command,
            directory,
            watched,
        } = job;
        let file = |name: &str| {
            File::create(directory.join(name)).map_err(|error| format!("{name}: {error}"))
        };
        command
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(file("stdout")?)
            .stderr(file("stderr")?);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start mpirun: {error}"))?;
        let mut running = Running {
            what: format!("{command:?}"),
            child,
            watched: watched.map(|name| Watched::new(directory.join(name))),
            directory,
            processes: vec![],
            ran: Duration::ZERO,
            over: false,
            lines: vec![],
        };
        running.stop()?;
        Ok(running)
    }

    /// Runs the job for a turn.
    fn go_on(&mut self) -> Result<(), Failed> {
        if self.over {
            return Ok(());
        }
        let begun = Instant::now();
        self.signal_all(Signal::SIGCONT)?;
        loop {
            sleep(LOOK);
            let status = self.child.try_wait().map_err(|error| error.to_string())?;
            let ran = begun.elapsed();
            if let Some(watched) = &mut self.watched {
                let ran = self.ran + ran;
                self.lines.extend(watched.news().map(|line| (line, ran)));
            }
            if let Some(status) = status {
                self.ran += ran;
                self.over = true;
                return self.judge(status);
            }
            if ran >= SLICE {
                self.stop()?;
                self.ran += begun.elapsed();
                return Ok(());
            }
        }
    }

    fn judge(&self, status: ExitStatus) -> Result<(), Failed> {
        let complaint = fs::read_to_string(self.directory.join("stderr")).unwrap_or_default();
        ensure!(status.success(), "{}: {status}: {complaint}", self.what);
        Ok(())
    }

    /// Stops the started process, then its children: a stopped process makes no more.
    fn stop(&mut self) -> Result<(), Failed> {
        self.processes = vec![Pid::from_raw(self.child.id() as i32)];
        let mut next = 0;
        while let Some(process) = self.processes.get(next).copied() {
            send(process, Signal::SIGSTOP)?;
            self.processes.extend(children(process));
            next += 1;
        }
        Ok(())
    }

    fn signal_all(&self, signal: Signal) -> Result<(), Failed> {
        // The ranks first, their parents last.
        let mut all = self.processes.iter().rev();
        all.try_for_each(|process| send(*process, signal))
    }

    fn lap(&mut self) -> Lap {
        Lap {
            whole: self.ran,
            lines: std::mem::take(&mut self.lines),
        }
    }
}

impl Drop for Running {
    /// Ends a job that is left over by another one's failure.
    fn drop(&mut self) {
        if !self.over {
            let _ = send(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            let _ = self.signal_all(Signal::SIGCONT);
            let _ = self.child.wait();
        }
    }
}

/// Sends a signal to a process, if it still exists.
fn send(process: Pid, signal: Signal) -> Result<(), Failed> {
    match kill(process, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!(
            "cannot send {signal} to process {process}: {error}"
        )),
    }
}

/// Returns the children of a process, by any of its threads (proc(5)); a process that is gone has none.
fn children(process: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return vec![];
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let ids = list.split_whitespace().filter_map(|id| id.parse().ok());
            ids.map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect()
}

/// A file that grows line by line.
struct Watched {
    path: PathBuf,
    seen: usize,
}

impl Watched {
    fn new(path: PathBuf) -> Watched {
        Watched { path, seen: 0 }
    }

    /// Returns the lines that have become complete since the last call.
    fn news(&mut self) -> impl Iterator<Item = String> + use<> {
        let text = self.grown().unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.seen += whole;
        let lines: Vec<String> = text[..whole].lines().map(str::to_owned).collect();
        lines.into_iter()
    }

    /// Returns the new text behind the known part, if there is any.
    fn grown(&self) -> Option<String> {
        if length(&self.path)? <= self.seen as u64 {
            return None;
        }
        let bytes = fs::read(&self.path).ok()?;
        Some(String::from_utf8_lossy(bytes.get(self.seen..)?).into_owned())
    }
}

fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|about| about.len())
}

#[cfg(test)]
mod tests {
    use stillpoint_tests::place::Directory;

    use super::*;

    fn shell(script: &str, place: &Directory) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            command,
            directory: place.path().to_owned(),
            watched: Some("said"),
        }
    }

    /// Counts for a while of its own processor time, in a child, and reports when it is half done.
    const WORK: &str = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); [ $i = 150000 ] && echo half >said; done; \
                        echo whole >>said'; exit 0";

    #[test]
    fn time_in_which_others_run_does_not_count() {
        let places = [(); 3].map(|()| Directory::new("slices").unwrap());
        let begun = Instant::now();
        let laps = run(places.iter().map(|place| shell(WORK, place)).collect()).unwrap();
        let all = begun.elapsed();
        let sum: Duration = laps.iter().map(|lap| lap.whole).sum();
        assert!(sum <= all, "{sum:?} of {all:?}");
        for lap in &laps {
            let said: Vec<&str> = lap.lines.iter().map(|(line, _)| line.as_str()).collect();
            assert_eq!(said, ["half", "whole"]);
            let half = lap.between(|line| line == "half", |line| line == "whole");
            assert!(half.unwrap() < lap.whole, "{half:?} of {:?}", lap.whole);
        }
    }

    #[test]
    fn who_has_no_turn_stands_still() {
        let place = Directory::new("slices").unwrap();
        let sleeps = "trap 'kill $!; exit 1' TERM; sleep 1000 & wait";
        let mut running = Running::start(shell(sleeps, &place)).unwrap();
        while running.processes.len() < 2 {
            running.go_on().unwrap();
            assert!(!running.over);
        }
        for process in &running.processes {
            let state = || {
                let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
                stat.rsplit(") ")
                    .next()
                    .and_then(|rest| rest.chars().next())
            };
            // The signal has arrived once its process has run.
            let begun = Instant::now();
            while state() != Some('T') && begun.elapsed() < Duration::from_secs(60) {
                sleep(LOOK);
            }
            assert_eq!(state(), Some('T'), "{process}");
        }
    }

    #[test]
    fn a_failure_is_told_and_ends_the_others() {
        let places = [(); 2].map(|()| Directory::new("slices").unwrap());
        let [sleeps, fails] = &places;
        let jobs = vec![
            shell("exec sleep 1000", sleeps),
            shell("echo why >&2; exit 3", fails),
        ];
        let begun = Instant::now();
        let text = run(jobs).err().unwrap();
        assert!(text.contains("why"), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(900));
    }
}
