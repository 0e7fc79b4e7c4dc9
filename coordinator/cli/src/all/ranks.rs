//! Processes of jobs, as the kernel reports them. Data that a user has written is not trusted.
//!
//! A process is held by a descriptor (pidfd) before it is looked at, so that no other process can have its number when the signal is sent. The kernel shows
//! details of a process only to processes of the same user and group, or to root. So a helper looks before it becomes its user ([`Seen`]), whose jobs may be
//! of several groups.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use stillpoint_protocol::installed::without_mark;
use stillpoint_protocol::job_file::{Process, start_time};
use stillpoint_protocol::namespace::{Namespace, PidScope};

use stillpoint_coordinator::batch;
use stillpoint_coordinator::registry::Batch;

/// The beginning of the name of every rank's program.
const LOWER: &str = "stillpoint-lower-";
const COMMAND: &str = "stillpoint";
/// The subcommands that start a job.
const STARTS: [&[u8]; 2] = [b"run", b"restart"];
/// The time that a start may take until there is a coordinator, and that the coordinator may take to write its job down.
pub const FOR_A_START: Duration = Duration::from_secs(10);
/// The unit in which the kernel gives a process's start time: a hundredth of a second.
const TICKS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// The program that a process was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Command,
    Lower,
}

/// The role of a process in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessRole {
    Rank,
    Coordinator,
}

/// Waits for jobs of a user that are just starting: they have no coordinator yet, and no rank.
pub fn wait_for_starts(user: u32, until: Instant) {
    let until = until.min(Instant::now() + FOR_A_START);
    let this = start_time(std::process::id()).unwrap_or_default();
    let starts = |pid| {
        // As a container's first process, the command stays for the whole job, which has started long ago.
        let young =
            start_time(pid).is_some_and(|began| began + FOR_A_START.as_secs() * TICKS > this);
        young && owner(pid) == Some(user) && is_start(pid)
    };
    while numbers().any(starts) && Instant::now() < until {
        thread::sleep(PAUSE);
    }
}

/// A user's jobs on this host, looked up before the helper touches anything of the user's.
#[derive(Debug, Default)]
pub struct Seen {
    pub coordinators: Vec<Serving>,
    pub ranks: Vec<(Name, Held)>,
}

/// A coordinator, found by the log that it has open in its checkpoint directory.
#[derive(Debug)]
pub struct Serving {
    pub process: Held,
    pub directory: PathBuf,
    /// The batch system's name of the job.
    pub batch: Option<Batch>,
}

impl Seen {
    pub fn of(user: u32) -> Seen {
        let coordinators = of(user, ProcessRole::Coordinator)
            .filter_map(serving)
            .collect();
        let ranks = of(user, ProcessRole::Rank)
            .filter_map(|pid| Some((name(pid), Held::rank(pid, user)?)))
            .collect();
        Seen {
            coordinators,
            ranks,
        }
    }
}

fn serving(pid: u32) -> Option<Serving> {
    let process = Held::hold(pid)?;
    let log = fs::read_link(format!("/proc/{pid}/fd/2")).ok()?;
    Some(Serving {
        process,
        directory: log.parent()?.to_owned(),
        batch: batch::of(|name| variable(pid, name)),
    })
}

/// All users with a process of a job on this host, or with a command that may be about to start one.
pub fn users() -> Vec<u32> {
    let this = std::process::id();
    let mut users: Vec<u32> = numbers()
        .filter(|pid| *pid != this && program(*pid).is_some())
        .filter_map(owner)
        .collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// The real groups of a user's job processes, ascending.
pub fn groups(user: u32) -> BTreeSet<u32> {
    let processes = numbers().filter(|pid| part(*pid).is_some() && owner(*pid) == Some(user));
    processes.filter_map(group).collect()
}

/// The name of a process in its own view: its PID namespace and its number there. A host sees a container's processes under other numbers.
pub type Name = (PidScope, u32);

/// The name of a process of this host, from job.json.
pub fn names(process: &Process) -> Name {
    let namespace = match process.namespace.is_unknown() {
        true => Namespace::here(),
        false => process.namespace,
    };
    (namespace.place(), process.pid)
}

/// The name of a process in its own view. If it is not known, this is the name in the view of this process.
fn name(pid: u32) -> Name {
    own_name(pid).unwrap_or_else(|| (Namespace::here().place(), pid))
}

fn own_name(pid: u32) -> Option<Name> {
    let namespace = Namespace::of(pid)?.place();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let own = numbers.split_ascii_whitespace().last()?;
    Some((namespace, own.parse().ok()?))
}

/// A variable of a process's environment, with its value at the start.
fn variable(pid: u32, name: &str) -> Option<String> {
    let all = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut all = all.split(|byte| *byte == 0);
    let found = all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(found.to_vec())
        .ok()
        .filter(|value| !value.is_empty())
}

fn of(user: u32, which: ProcessRole) -> impl Iterator<Item = u32> {
    numbers().filter(move |pid| part(*pid) == Some(which) && owner(*pid) == Some(user))
}

fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn group(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Gid:"))?;
    numbers.split_ascii_whitespace().next()?.parse().ok()
}

fn owner(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}"))
        .ok()
        .map(|about| about.uid())
}

/// The program of Stillpoint that a process was started from. Its name and arguments are not looked at, since the application can change them.
fn program(pid: u32) -> Option<Program> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = without_mark(program.file_name()?).to_str()?;
    match name {
        COMMAND => Some(Program::Command),
        _ => name.starts_with(LOWER).then_some(Program::Lower),
    }
}

fn part(pid: u32) -> Option<ProcessRole> {
    match program(pid)? {
        Program::Lower => Some(ProcessRole::Rank),
        Program::Command => is_coordinator(pid).then_some(ProcessRole::Coordinator),
    }
}

/// Whether it is a command that has not become a rank yet.
fn is_start(pid: u32) -> bool {
    if program(pid) != Some(Program::Command) || is_coordinator(pid) {
        return false;
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let word = line.split(|byte| *byte == 0).nth(1);
    word.is_some_and(|word| STARTS.contains(&word))
}

/// Whether its stderr is a coordinator's log. In a command, stderr is something else.
fn is_coordinator(pid: u32) -> bool {
    let log = fs::read_link(format!("/proc/{pid}/fd/2"));
    let is_log = |log: &Path| {
        let name = log.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(stillpoint_coordinator::log::NAME))
    };
    log.is_ok_and(|log| is_log(&log))
}

/// A process that is held.
#[derive(Debug)]
pub struct Held {
    pub pid: u32,
    descriptor: OwnedFd,
}

impl Held {
    /// Holds a rank of this user.
    fn rank(pid: u32, user: u32) -> Option<Held> {
        let held = Held::hold(pid)?;
        (part(pid) == Some(ProcessRole::Rank) && owner(pid) == Some(user)).then_some(held)
    }

    /// Holds a process of this host that job.json names.
    pub fn named(process: &Process) -> Option<Held> {
        let held = Held::hold(process.pid)?;
        let same = process.alive() == Some(true) && process.start_time != 0;
        same.then_some(held)
    }

    fn hold(pid: u32) -> Option<Held> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let descriptor = pidfd_open(number, PidfdFlags::empty()).ok()?;
        Some(Held { pid, descriptor })
    }

    /// Whether it handles a signal itself, instead of being ended by it.
    pub fn catches(&self, signal: Signal) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
    }

    /// Sends it a signal, and returns whether that was possible.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.descriptor, signal).is_ok()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        let mut ended = [PollFd::new(&self.descriptor, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec::default())) == Ok(0)
    }
}
