//! Tests what the restart will open, map or ask for while the job still lives. A failure refuses the checkpoint and names the thing, so that a job is not
//! suspended in a state that cannot be restarted.
//!
//! Each part is tested by the code that the restart runs: descriptors by [`super::descriptors::rehearse`], mapped files and the process's directory here.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use stillpoint_refusals::{Refusal, refusal};

use super::{descriptors, shared};
use crate::arch::layout::DESCRIPTOR_LIMIT;
use crate::capture::contents::Contents;
use crate::capture::maps::Mapping;
use crate::capture::own_descriptor_table::apart;
use crate::capture::{self, process};
use crate::threads;

/// Returns, for people, what a restart could not restore of these descriptors, or would restore differently; the threads are stopped.
pub fn of_files(numbers: &[RawFd]) -> Vec<Refusal> {
    aside(|| of_descriptors(numbers))
}

/// The same for memory mappings.
pub fn of_memory(mappings: &[Mapping]) -> Vec<Refusal> {
    aside(|| shared::rehearse(mappings))
}

/// The same for the process's root and working directories.
pub fn of_places() -> Vec<Refusal> {
    aside(here)
}

fn aside(rehearse: impl FnOnce() -> Vec<Refusal> + Send) -> Vec<Refusal> {
    apart(rehearse).unwrap_or_else(|error: io::Error| {
        vec![refusal!(
            NoRoom,
            "cannot test whether a restart would succeed: cannot start a thread with its own descriptor table: {error}"
        )]
    })
}

/// Returns a reason if some thread has something of its own that a restart makes once for all threads (`unshare`, `setns`).
pub fn of_threads() -> Option<Refusal> {
    // SAFETY: gettid takes nothing and touches no memory.
    let own = unsafe { libc::gettid() };
    threads::list().into_iter().find_map(|thread| {
        let tid = thread.real_tid() as i32;
        let what = has_own(own, tid)?;
        Some(refusal!(
            ThreadsOwn,
            "its thread {} has {what} of its own, and a restart cannot restore that",
            thread.virtual_tid()
        ))
    })
}

/// Whether a thread sees a file descriptor that this thread opens.
fn sees(thread: i32) -> bool {
    // SAFETY: the call takes numbers and makes a descriptor, which is closed below.
    let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if number < 0 {
        return true;
    }
    // SAFETY: the descriptor has just been made, and nothing else owns it.
    let opened = unsafe { OwnedFd::from_raw_fd(number) };
    let shown = std::fs::read_link(format!("/proc/self/task/{thread}/fd/{number}"));
    let own = std::fs::read_link(format!("/proc/thread-self/fd/{number}"));
    drop(opened);
    matches!((shown, own), (Ok(shown), Ok(own)) if shown == own)
}

/// Returns a thread's working directory.
fn place_of(thread: i32) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/self/task/{thread}/cwd")).ok()
}

/// Returns something that two threads do not share, if there is such a thing.
fn has_own(one: i32, other: i32) -> Option<String> {
    const KCMP_FILES: libc::c_int = 2;
    const KCMP_FS: libc::c_int = 3;
    for (kind, what) in [
        (KCMP_FILES, "a table of descriptors"),
        (KCMP_FS, "a working directory"),
    ] {
        // SAFETY: kcmp takes numbers, only compares, and touches no memory. Kernels without it give an error: a negative number.
        let result = unsafe { libc::syscall(libc::SYS_kcmp, one, other, kind, 0, 0) };
        let differs = || match kind {
            KCMP_FILES => !sees(other),
            _ => place_of(one) != place_of(other),
        };
        // A container's seccomp profile may forbid it.
        if result > 0 || result < 0 && differs() {
            return Some(what.to_owned());
        }
    }
    let space = |thread: i32, name: &str| {
        std::fs::read_link(format!("/proc/self/task/{thread}/ns/{name}")).ok()
    };
    let names = [
        "cgroup",
        "ipc",
        "mnt",
        "net",
        "pid_for_children",
        "time_for_children",
        "user",
        "uts",
    ];
    let differs = names
        .into_iter()
        .find(|name| match (space(one, name), space(other, name)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        });
    differs.map(|name| format!("a namespace ({name})"))
}

fn of_descriptors(numbers: &[RawFd]) -> Vec<Refusal> {
    if let Some(number) = beyond_reach() {
        return vec![refusal!(
            HighDescriptor,
            "descriptor {number} is above the highest number that Stillpoint tracks ({}): close it before a checkpoint",
            DESCRIPTOR_LIMIT - 1
        )];
    }
    let mut contents = Contents::default();
    match capture::descriptors::survey(numbers, &mut contents) {
        Err(refusals) => refusals,
        Ok(table) => {
            let (living, _) = capture::descriptors::look(numbers);
            descriptors::rehearse(&table, &living, &contents)
        }
    }
}

/// Returns an open descriptor number of the application for which the gate has no bit.
fn beyond_reach() -> Option<usize> {
    let numbers = std::fs::read_dir("/proc/self/fd").ok()?;
    numbers
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|number| *number >= DESCRIPTOR_LIMIT)
}

fn here() -> Vec<Refusal> {
    let mut reasons = Vec::new();
    match process::directory() {
        Err(reason) => reasons.push(reason),
        Ok(directory) => reasons.extend(process::enterable(&directory).err()),
    }
    reasons.extend(process::moved_root());
    reasons
}
