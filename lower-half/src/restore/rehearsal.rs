//! The rule behind a suspend that succeeds: what the restart will open, map or ask for has been tried while the job still
//! lives, and what fails refuses the checkpoint by name.
//!
//! Each part is tried by the code that the restart runs: descriptors by [`super::descriptors::rehearse`], mapped files and the
//! process's directory here.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::{descriptors, shared};
use crate::arch::layout::DESCRIPTOR_LIMIT;
use crate::capture::apart::apart;
use crate::capture::contents::Contents;
use crate::capture::maps::Mapping;
use crate::capture::{self, process};
use crate::threads;

/// What a restart would fail at, or bring back otherwise, of these descriptors, in words for people; the threads stand still.
pub fn of_files(numbers: &[RawFd]) -> Vec<String> {
    aside(|| of_descriptors(numbers))
}

/// As [`of_files`], of memory.
pub fn of_memory(mappings: &[Mapping]) -> Vec<String> {
    aside(|| shared::rehearse(mappings))
}

/// As [`of_files`], of where the process is in the file system.
pub fn of_places() -> Vec<String> {
    aside(here)
}

fn aside(rehearse: impl FnOnce() -> Vec<String> + Send) -> Vec<String> {
    apart(rehearse).unwrap_or_else(|error: io::Error| {
        vec![format!(
            "what a restart needs cannot be tried: no thread with a descriptor table of its own can be started: {error}"
        )]
    })
}

/// A thread that has for itself what a restart makes once for all (`unshare`, `setns`).
pub fn of_threads() -> Option<String> {
    // SAFETY: gives a number.
    let own = unsafe { libc::gettid() };
    threads::list().into_iter().find_map(|thread| {
        let tid = thread.real_tid() as i32;
        let what = has_own(own, tid)?;
        Some(format!(
            "its thread {} has {what} of its own, which cannot be carried over a restart",
            thread.virtual_tid()
        ))
    })
}

/// Whether a thread has what is opened by this one.
fn sees(thread: i32) -> bool {
    // SAFETY: makes a descriptor, which is closed below.
    let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if number < 0 {
        return true;
    }
    // SAFETY: it has just been made, and nobody else knows of it.
    let opened = unsafe { OwnedFd::from_raw_fd(number) };
    let shown = std::fs::read_link(format!("/proc/self/task/{thread}/fd/{number}"));
    let own = std::fs::read_link(format!("/proc/thread-self/fd/{number}"));
    drop(opened);
    matches!((shown, own), (Ok(shown), Ok(own)) if shown == own)
}

/// Where a thread is in the file system.
fn place_of(thread: i32) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/self/task/{thread}/cwd")).ok()
}

/// What two threads do not share.
fn has_own(one: i32, other: i32) -> Option<String> {
    const KCMP_FILES: libc::c_int = 2;
    const KCMP_FS: libc::c_int = 3;
    for (kind, what) in [
        (KCMP_FILES, "a table of descriptors"),
        (KCMP_FS, "a working directory"),
    ] {
        // SAFETY: kcmp compares; it touches no memory. Kernels without it give an error: a negative number.
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

fn of_descriptors(numbers: &[RawFd]) -> Vec<String> {
    if let Some(number) = beyond_reach() {
        return vec![format!(
            "descriptor {number} has a higher number than Stillpoint keeps account of ({}): close it before a checkpoint",
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

/// A number that is the application's, but that the gate has no bit for.
fn beyond_reach() -> Option<usize> {
    let numbers = std::fs::read_dir("/proc/self/fd").ok()?;
    numbers
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|number| *number >= DESCRIPTOR_LIMIT)
}

fn here() -> Vec<String> {
    let mut reasons = Vec::new();
    match process::directory() {
        Err(reason) => reasons.push(reason),
        Ok(directory) => reasons.extend(process::enterable(&directory).err()),
    }
    reasons.extend(process::moved_root());
    reasons
}
