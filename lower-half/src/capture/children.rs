//! Child processes of the application: those that are alive, and those that have ended but were not waited for.

use stillpoint_refusals::{Refusal, refusal};

use crate::gate::identity;
use crate::ground::child_delay::CHILD;
use crate::ground::ended_children::{self, EndedChild};
use crate::ground::{proc_files, starters};

/// A word of the tracker's command line.
const TRACKER: &str = "multiprocessing.resource_tracker";

/// Returns the reasons against a checkpoint: living child processes, and too many ended ones.
pub fn alive(lower: &[u32]) -> Vec<Refusal> {
    let (ended, alive) = split(lower);
    let ended = ended.len() + ended_children::all().len();
    let mut reasons: Vec<Refusal> = alive.into_iter().map(refusal).collect();
    if ended > ended_children::MOST {
        reasons.push(refusal!(
            EndedChildren,
            "{ended} children of it have ended and were not waited for, more than the {} that can be carried: wait for them",
            ended_children::MOST
        ));
    }
    reasons
}

/// Returns child processes that have ended but were not waited for, with those from before a restart.
pub fn ended(lower: &[u32]) -> Vec<EndedChild> {
    let known = |end: EndedChild| EndedChild {
        group: identity::known_process(end.group),
        ..end
    };
    let found = split(lower).0.into_iter().map(known);
    ended_children::all().into_iter().chain(found).collect()
}

/// Returns the children of this launch that have ended, with the kernel's ids, and those that are alive.
fn split(lower: &[u32]) -> (Vec<EndedChild>, Vec<u32>) {
    let (mut ended, mut alive) = (Vec::new(), Vec::new());
    if has_children() {
        let found = children_of_tasks().unwrap_or_else(children_by_parent);
        for pid in found.into_iter().filter(|pid| !lower.contains(pid)) {
            match how_it_ended(pid) {
                Some(end) => ended.push(end),
                None => alive.push(pid),
            }
        }
    }
    (ended, alive)
}

fn refusal(pid: u32) -> Refusal {
    let name = proc_files::by(&format!("/proc/{pid}/comm")).unwrap_or_default();
    let line = proc_files::by(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let advice = match line.contains(TRACKER) {
        true => {
            "Python's resource tracker, which lives as long as the program: have the program keep from it what it makes (SharedMemory(track=False)), or end it \
             (multiprocessing.resource_tracker._resource_tracker._stop()) before a checkpoint"
        }
        false => "wait until it has ended",
    };
    refusal!(LiveChild, "{CHILD}, {pid} ({}): {advice}", name.trim_end())
}

/// Returns the kernel's record of a child that has ended; the record stays there.
fn how_it_ended(pid: u32) -> Option<EndedChild> {
    // SAFETY: integers only, for which zeros are valid.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let mut usage = vec![0u64; ended_children::USAGE];
    let ways = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel fills both structures, which are as long as its own and live until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PID,
            pid,
            &raw mut information,
            ways,
            usage.as_mut_ptr(),
        )
    };
    // SAFETY: the kernel has filled the structure for a child that ended, or left its zeros; getpgid and getpgrp take numbers.
    let (whose, user, status, group, own) = unsafe {
        (
            information.si_pid() as u32,
            information.si_uid(),
            information.si_status(),
            libc::getpgid(pid as i32),
            libc::getpgrp(),
        )
    };
    // The kernel also reports a child that is traced and stopped.
    let ended = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
    (result == 0 && whose == pid && ended.contains(&information.si_code)).then(|| EndedChild {
        pid,
        group: group.max(0) as u32,
        own_group: group == own,
        user,
        code: information.si_code,
        status,
        usage,
    })
}

/// Returns whether any thread of this process has a child. The kernel tells this to a process that asks for the end of one, without taking
/// it.
fn has_children() -> bool {
    // SAFETY: integers only, for which zeros are valid.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let ways = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the kernel fills the structure.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut information, ways) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// Returns the children that the kernel lists for each thread, or `None` if it does not list them (CONFIG_PROC_CHILDREN).
fn children_of_tasks() -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(children) => found.extend(numbers(&children)),
            // A thread that has ended meanwhile has left its children to another.
            Err(_) if !task.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

/// Returns every process whose parent is this one.
fn children_by_parent() -> Vec<u32> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| starters::parent(*pid) == Some(own))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_with_and_without_the_kernels_list() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(has_children());
        assert!(children_by_parent().contains(&child.id()));
        if let Some(listed) = children_of_tasks() {
            assert!(listed.contains(&child.id()));
        }
        assert!(refusal(child.id()).details().contains("(sleep)"));
        assert!(how_it_ended(child.id()).is_none());
        child.kill().unwrap();
        while how_it_ended(child.id()).is_none() {}
        child.wait().unwrap();
        assert!(!children_by_parent().contains(&child.id()));
    }
}
