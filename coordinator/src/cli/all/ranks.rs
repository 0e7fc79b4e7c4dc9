//! Processes of jobs, as the kernel tells of them: nothing that a user has written is believed.
//!
//! A process is held by a descriptor (pidfd) before it is looked at, so that no other one can have its number when the signal is sent.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use stillpoint_protocol::job_file::{Process, start_time};

/// What every rank's process is started from.
const LOWER: &str = "stillpoint-lower-";
const COMMAND: &str = "stillpoint";
/// What a link in /proc says of a file that was replaced meanwhile.
const REPLACED: &str = " (deleted)";

/// What a process of a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Rank,
    Coordinator,
}

/// Everybody who has a process of a job on this host.
pub fn users() -> Vec<u32> {
    let mut users: Vec<u32> = numbers()
        .filter(|pid| part(*pid).is_some())
        .filter_map(owner)
        .collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// The ranks of a user.
pub fn ranks(user: u32) -> Vec<u32> {
    of(user, Part::Rank).collect()
}

/// The checkpoint directories of a user's coordinators: each has its log there open.
pub fn served(user: u32) -> Vec<(u32, PathBuf)> {
    of(user, Part::Coordinator)
        .filter_map(|pid| {
            let log = fs::read_link(format!("/proc/{pid}/fd/2")).ok()?;
            let name = log.file_name()?.to_str()?;
            let directory = log.parent()?.to_owned();
            name.starts_with(crate::log::NAME)
                .then_some((pid, directory))
        })
        .collect()
}

/// A variable of a process's environment, as it was started with.
pub fn variable(pid: u32, name: &str) -> Option<String> {
    let all = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut all = all.split(|byte| *byte == 0);
    let found = all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(found.to_vec())
        .ok()
        .filter(|value| !value.is_empty())
}

fn of(user: u32, which: Part) -> impl Iterator<Item = u32> {
    numbers().filter(move |pid| part(*pid) == Some(which) && owner(*pid) == Some(user))
}

fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn owner(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}"))
        .ok()
        .map(|about| about.uid())
}

/// By the program that it was started from: its name and its arguments are the application's.
fn part(pid: u32) -> Option<Part> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = program.file_name()?.to_str()?;
    let name = name.strip_suffix(REPLACED).unwrap_or(name);
    if name.starts_with(LOWER) {
        return Some(Part::Rank);
    }
    (name == COMMAND && is_coordinator(pid)).then_some(Part::Coordinator)
}

/// Its log is all that it has open in the place of stderr, of which a command has something else.
fn is_coordinator(pid: u32) -> bool {
    let log = fs::read_link(format!("/proc/{pid}/fd/2"));
    let is_log = |log: &Path| {
        let name = log.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(crate::log::NAME))
    };
    log.is_ok_and(|log| is_log(&log))
}

/// A process that is held.
#[derive(Debug)]
pub struct Held {
    pub pid: u32,
    start_time: Option<u64>,
    descriptor: OwnedFd,
}

impl Held {
    /// Holds a rank of this user.
    pub fn rank(pid: u32, user: u32) -> Option<Held> {
        let held = Held::hold(pid)?;
        (part(pid) == Some(Part::Rank) && owner(pid) == Some(user)).then_some(held)
    }

    /// Holds a process of this host as job.json names it.
    pub fn named(process: &Process) -> Option<Held> {
        let held = Held::hold(process.pid)?;
        let same = process.alive() == Some(true) && process.start_time != 0;
        same.then_some(held)
    }

    fn hold(pid: u32) -> Option<Held> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let descriptor = pidfd_open(number, PidfdFlags::empty()).ok()?;
        Some(Held {
            pid,
            start_time: start_time(pid),
            descriptor,
        })
    }

    /// Whether it handles a signal itself, instead of ending by it.
    pub fn catches(&self, signal: Signal) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
    }

    /// Sends it a signal; whether that was possible.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.descriptor, signal).is_ok()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        self.start_time.is_some() && start_time(self.pid) == self.start_time
    }
}
