//! How a launch begins: what a rank hears of it before it joins its job.
//!
//! Rank 0 starts the coordinator, whose first word says whether it serves. The other ranks find the job in job.json, or hear from
//! rank 0, if it is on their host, why there is none: by a socket without a file. Some launchers end the other ranks when rank 0 has failed, some
//! let them wait for a job that nobody has started.
//!
//! All this takes as long as a rank takes to become its lower half. So where it is known what a rank will be, the command does not wait for
//! it, but leaves it to the lower half ([`Awaits`]).

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
use stillpoint_directory::{Directory, Whose};

use crate::job_file::{JobFile, JobState};
use crate::launch::Ready;

/// How long the other ranks wait for rank 0's decision: network file systems show it late.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at job.json.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long rank 0 stays to tell, if not all others have heard it before.
const STAYS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
/// How long a word may take to arrive.
const SPEAKS: Duration = Duration::from_secs(2);
/// Longest word.
const LONGEST: u64 = 64 << 10;

/// What the lower half has yet to hear before its rank can join the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaits {
    /// The first word of the coordinator that this process has started.
    Coordinator {
        /// An open descriptor, on which it comes.
        answer: i32,
        /// The child that has started it, and has ended by then: nobody's business but this process's.
        first: i32,
    },
    /// That rank 0 has started the job, afresh.
    Job,
}

/// Why there will be no job, and what this rank is to end with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Ended {
    pub status: u8,
    pub text: String,
}

/// Why the job has not been found.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// Rank 0 has said why, to the user as well.
    #[error("rank 0 has failed: {}", .0.text)]
    Told(Ended),
    #[error(
        "{directory}: cannot write checkpoints there: {source}: choose another directory with --dir"
    )]
    Directory {
        directory: String,
        source: std::io::Error,
    },
    #[error(
        "rank 0 has not started the job within {} s: is {directory} on a file system that all hosts share?",
        PATIENCE.as_secs()
    )]
    Late { directory: String },
}

/// Waits for the first word of the coordinator that this process has started by its child `first`, and for the end of that.
pub fn hear(answer: File, first: i32) -> Result<(), Ended> {
    let failed = |what: &str, error: &dyn std::error::Error| Ended {
        status: 1,
        text: format!("cannot start the coordinator: {what}: {error}"),
    };
    let mut line = String::new();
    BufReader::new(answer)
        .read_line(&mut line)
        .map_err(|error| failed("wait for it", &error))?;
    // The process that serves is this one's grandchild: nothing is left for the application to reap.
    loop {
        match waitpid(Pid::from_raw(first), None) {
            Err(Errno::EINTR) => {}
            // Where SIGCHLD is ignored, it has gone by itself.
            Ok(_) | Err(Errno::ECHILD) => break,
            Err(error) => return Err(failed("wait for it", &error)),
        }
    }
    match serde_json::from_str(&line) {
        Ok(Ready::Serving) => Ok(()),
        Ok(Ready::Failed { status, text }) => Err(Ended { status, text }),
        Err(error) => Err(failed("it ended without a word", &error)),
    }
}

/// Waits until job.json says what rank 0 has started, or that there is nothing to start.
pub fn wait_for_job(launch: &str, directory: &Path) -> Result<JobFile, Missing> {
    let begun = Instant::now();
    loop {
        if let Ok(job) = JobFile::read(directory)
            && job.launch == launch
            && matches!(job.state, JobState::Running | JobState::Finished)
        {
            // Rank 0 has looked at the directory; what this host sees may be another one.
            Directory::open(directory, Whose::Ours).map_err(|source| Missing::Directory {
                directory: directory.display().to_string(),
                source,
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
        // An eighth of what it has taken so far: hardly later than need be, and seldom in the way of rank 0.
        let waited = begun.elapsed();
        thread::sleep((waited / 8).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
    }
}

/// Why rank 0 of this launch has failed, if it has, and is on this host.
pub fn heard(launch: &str) -> Option<Ended> {
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
    Some(Ended {
        status: *status,
        text: String::from_utf8_lossy(text).into_owned(),
    })
}

/// Rank 0, which has failed, tells the `others` of its host.
pub fn tell(launch: &str, others: u32, why: &Ended) {
    // Without a socket the others speak for themselves.
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
                // Who does not listen need not hear.
                let told = stream.set_nonblocking(true);
                let _ = told.and_then(|()| stream.write_all(&word));
                heard += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(_) => break,
        }
    }
}

/// In the abstract namespace: nothing is left behind.
fn address(launch: &str) -> Option<SocketAddr> {
    let name = format!("stillpoint-{}-{launch}", geteuid());
    SocketAddr::from_abstract_name(name).ok()
}
