//! One launch, from its start until nothing of its job is left.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use stillpoint_protocol::job_file::{JobFile, JobState, Process};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::interrupt::{ignored, is_in};
use crate::target::Target;

/// The time that ranks may take to end after their launcher has gone. Those of this host are then killed.
const GRACE: Duration = Duration::from_secs(10);
/// The time after which a job that still runs elsewhere is left alone.
const LONGEST: Duration = Duration::from_secs(180);
/// The time in which a job of a launcher that has ended early may show itself.
const A_MOMENT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(100);

/// Signals that are passed on to the launcher, and end the supervision.
const PASSED_ON: [Signal; 5] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The end of a launcher.
pub struct LauncherEnd {
    pub status: ExitStatus,
    /// Somebody has sent a signal.
    pub stopped: bool,
}

/// Runs a launcher to its end, and passes signals on to it.
///
/// A signal of the terminal comes to the launcher by itself.
pub async fn launcher(words: &[OsString], signals: &mut Signals) -> io::Result<LauncherEnd> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program).args(arguments).spawn()?;
    let mut stopped = false;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(LauncherEnd { status: status?, stopped }),
            came = signals.next() => {
                stopped = true;
                let own = came != Signal::SIGINT || !nix::unistd::isatty(io::stdin()).unwrap_or(false);
                if let (true, Some(launcher)) = (own, child.id()) {
                    // It may have ended just now.
                    let _ = kill(Pid::from_raw(launcher as i32), came);
                }
            }
        }
    }
}

/// The signals that are passed on. They are caught from now on, except those that the starter wants to be ignored: the launcher ignores them too.
pub struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    pub fn new() -> io::Result<Signals> {
        let one = |passed: &Signal| Ok((*passed, signal(SignalKind::from_raw(*passed as i32))?));
        let caught = caught(ignored());
        caught
            .iter()
            .map(one)
            .collect::<io::Result<_>>()
            .map(Signals)
    }

    /// Waits until one comes, at most for this time. Returns whether one came.
    pub async fn within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_ok()
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (number, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// The signals to pass on, if these are ignored.
fn caught(ignored: u64) -> Vec<Signal> {
    let all = PASSED_ON.into_iter();
    all.filter(|signal| !is_in(ignored, *signal)).collect()
}

/// The job of a launch that has ended.
pub enum JobEnd {
    /// The launch never came to a job.
    Never,
    Ended(Box<JobFile>),
    /// Its coordinator and its ranks have gone without a report.
    Silent(Box<JobFile>),
    /// It still runs, where this process cannot end it.
    Stays(Box<JobFile>),
}

/// Waits until nothing of the job is left after its launcher has ended. `before`: the launch that job.json showed before this one.
pub async fn job_end(directory: &Path, before: Option<&str>) -> JobEnd {
    let since = Instant::now();
    loop {
        let now = Target::at(directory).ok();
        let now = now.filter(|target| Some(target.job.launch.as_str()) != before);
        match now {
            None if since.elapsed() >= A_MOMENT => return JobEnd::Never,
            None => {}
            Some(target) if target.job.state != JobState::Running => {
                return JobEnd::Ended(Box::new(target.job));
            }
            Some(target) if target.all_gone() => {
                // A coordinator writes the job's end as the last thing.
                let last = JobFile::read(directory).ok();
                return match last.filter(|job| job.state != JobState::Running) {
                    Some(job) => JobEnd::Ended(Box::new(job)),
                    None => JobEnd::Silent(Box::new(target.job)),
                };
            }
            Some(target) if since.elapsed() >= LONGEST => {
                return JobEnd::Stays(Box::new(target.job));
            }
            Some(target) if since.elapsed() >= GRACE => {
                target.job.processes.iter().for_each(end);
            }
            Some(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Kills a rank of this host. It is held before it is looked at, so that no other process has its number.
fn end(process: &Process) {
    let Some(number) = rustix::process::Pid::from_raw(process.pid as i32) else {
        return;
    };
    if process.start_time == 0 || !process.is_here() {
        return;
    }
    if let Ok(held) = pidfd_open(number, PidfdFlags::empty())
        && process.alive() == Some(true)
    {
        // It may have ended just now.
        let _ = pidfd_send_signal(&held, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_starter_wants_to_be_ignored_is_not_caught() {
        assert_eq!(caught(0), PASSED_ON);
        let nohup = 1 << (Signal::SIGHUP as u64 - 1);
        let background = nohup | 1 << (Signal::SIGINT as u64 - 1);
        assert!(!caught(nohup).contains(&Signal::SIGHUP));
        let left = [Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];
        assert_eq!(caught(background), left);
    }
}
