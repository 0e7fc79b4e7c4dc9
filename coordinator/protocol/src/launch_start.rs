//! The beginning of a launch, until a rank joins its job.
//!
//! Rank 0 starts the coordinator, whose first message says whether it serves. The other ranks find the job in job.json. If there is none, ranks on rank 0's
//! host hear the reason from rank 0, by a socket without a file. Some launchers end the other ranks when rank 0 has failed; others let them wait for a job
//! that never starts.
//!
//! This takes as long as a rank takes to become its lower half. So a command that knows what a rank will be does not wait, but leaves the waiting to the
//! lower half ([`Awaits`]).

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, geteuid};
use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_refusals::{Code, Coded};

use crate::job_file::{JobFile, JobState};
use crate::launch::Ready;

/// The time that the other ranks wait for rank 0's decision. Network file systems show files late.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at job.json.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// The time for which rank 0 stays to tell the other ranks, unless all have heard it before.
const STAYS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
/// The time that a message may take to arrive.
const SPEAKS: Duration = Duration::from_secs(2);
/// The length of the longest message.
const LONGEST: u64 = 64 << 10;

/// The message that the lower half still waits for before its rank can join the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaits {
    /// The first message of the coordinator that this process has started.
    Coordinator {
        /// The open descriptor on which it comes.
        answer: i32,
        /// The child that has started it, which has ended by then. Only this process may wait for it.
        first: i32,
    },
    /// The news that rank 0 has started a new job.
    Job,
}

/// The reason why there will be no job, and the exit status for this rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LaunchFailure {
    pub status: u8,
    pub text: String,
}

/// The reason why the job has not been found.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// Rank 0 has failed. It has told the user the reason, too.
    #[error("rank 0 has failed: {}", .0.text)]
    Told(LaunchFailure),
    #[error(
        "{directory}: cannot write checkpoints there: {source}: choose another directory with --dir"
    )]
    Directory {
        directory: String,
        source: std::io::Error,
    },
    #[error(
        "rank 0 has not started the job within {} s: check that all hosts share the file system of {directory}",
        PATIENCE.as_secs()
    )]
    Late { directory: String },
}

impl Coded for Missing {
    fn code(&self) -> Code {
        match self {
            Missing::Told(_) | Missing::Late { .. } => Code::NoJob,
            Missing::Directory { .. } => Code::UnsafeDirectory,
        }
    }
}

/// Waits for the first message of the coordinator, which this process has started by its child `first`, and for the end of that child.
pub fn hear(answer: File, first: i32) -> Result<(), LaunchFailure> {
    let failed = |what: &str, error: &dyn std::error::Error| LaunchFailure {
        status: 1,
        text: format!("cannot start the coordinator: {what}: {error}"),
    };
    let mut line = String::new();
    BufReader::new(answer)
        .read_line(&mut line)
        .map_err(|error| failed("waiting for it", &error))?;
    // The process that serves is this one's grandchild, so the application has no child left to reap.
    loop {
        match waitpid(Pid::from_raw(first), None) {
            Err(Errno::EINTR) => {}
            // If SIGCHLD is ignored, the child has gone by itself.
            Ok(_) | Err(Errno::ECHILD) => break,
            Err(error) => return Err(failed("waiting for it", &error)),
        }
    }
    match serde_json::from_str(&line) {
        Ok(Ready::Serving) => Ok(()),
        Ok(Ready::Failed { status, text }) => Err(LaunchFailure { status, text }),
        Err(error) => Err(failed("it ended before it answered", &error)),
    }
}

/// Waits until job.json describes the job that rank 0 has started, or rank 0 says that there is none to start.
pub fn wait_for_job(launch: &str, directory: &Path) -> Result<JobFile, Missing> {
    let begun = Instant::now();
    loop {
        if let Ok(job) = JobFile::read(directory)
            && job.launch == launch
            && matches!(job.state, JobState::Running | JobState::Finished)
        {
            // Rank 0 has checked the directory, but this host may see another one.
            Directory::open(directory, RequiredOwner::Ours).map_err(|source| {
                Missing::Directory {
                    directory: directory.display().to_string(),
                    source,
                }
            })?;
            return Ok(job);
        }
        if let Some(why) = heard(launch) {
            return Err(Missing::Told(why));
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Missing::Late {
                directory: directory.display().to_string(),
            });
        }
        // An eighth of the time waited so far: this finds the job soon enough, and seldom disturbs rank 0.
        let waited = begun.elapsed();
        thread::sleep((waited / 8).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
    }
}

/// Returns why rank 0 of this launch has failed, if it has, and is on this host.
pub fn heard(launch: &str) -> Option<LaunchFailure> {
    let mut stream = UnixStream::connect_addr(&address(launch)?).ok()?;
    let peer = getsockopt(&stream, PeerCredentials).ok()?;
    if peer.uid() != geteuid().as_raw() {
        return None;
    }
    stream.set_read_timeout(Some(SPEAKS)).ok()?;
    let mut said = Vec::new();
    Read::by_ref(&mut stream)
        .take(LONGEST)
        .read_to_end(&mut said)
        .ok()?;
    let (status, text) = said.split_first()?;
    Some(LaunchFailure {
        status: *status,
        text: String::from_utf8_lossy(text).into_owned(),
    })
}

/// Tells the `others` on this host why this process, rank 0, has failed.
pub fn tell(launch: &str, others: u32, why: &LaunchFailure) {
    // Without a socket the other ranks report their own errors.
    let Some(listener) = address(launch).and_then(|at| UnixListener::bind_addr(&at).ok()) else {
        return;
    };
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let mut word = vec![why.status];
    word.extend(why.text.bytes());
    let (began, mut heard) = (Instant::now(), 0);
    while heard < others && began.elapsed() < STAYS {
        match listener.accept() {
            Ok((mut stream, _)) => {
                // A rank that does not listen misses the message.
                let told = stream.set_nonblocking(true);
                let _ = told.and_then(|()| stream.write_all(&word));
                heard += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(_) => break,
        }
    }
}

/// The address is in the abstract namespace, so no file stays behind.
fn address(launch: &str) -> Option<SocketAddr> {
    let name = format!("stillpoint-{}-{launch}", geteuid());
    SocketAddr::from_abstract_name(name).ok()
}
