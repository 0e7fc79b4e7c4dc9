//! What of this process forbids a checkpoint, in words for people; asked before the drain.

use std::os::fd::RawFd;

use crate::capture::access::{Access, Revoked};
use crate::capture::maps::{self, Mapping};
use crate::capture::{ipc, memory};
use crate::gate::descriptors::{self, unseen};
use crate::gate::{holdings, semaphores};
use crate::ground::{children, starters, told};
use crate::restore::rehearsal;
use stillpoint_image::tables::RegionKind;
use stillpoint_wrappers::gate::is_upper;

/// Every reason; empty: none. Each part goes inside by itself: whoever takes the access back waits for one of them only.
///
/// # Errors
/// The access has been taken back.
pub fn of_process(access: &Access) -> Result<Vec<String>, Revoked> {
    of(&descriptors::upper(), &children::started(), access)
}

/// Every reason of a process with these descriptors; `started` are processes that the lower half itself has started.
pub fn of(numbers: &[RawFd], started: &[u32], access: &Access) -> Result<Vec<String>, Revoked> {
    let inside = access.enter()?;
    let mut reasons = children_of(started);
    drop(inside);
    let inside = access.enter()?;
    reasons.extend(holdings::refusals());
    reasons.extend(unseen::doubtful().into_iter().map(|number| {
        let link = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
        format!(
            "descriptor {number} ({}) may have come to it unseen, by io_uring or fanotify: close it before a checkpoint",
            link.display()
        )
    }));
    reasons.extend(numbers.iter().filter_map(|number| message_queue(*number)));
    reasons.extend(undo_of_semaphores());
    reasons.extend(ipc::survey().1);
    drop(inside);
    let inside = access.enter()?;
    let mappings = maps::upper();
    drop(inside);
    match mappings {
        Ok(mappings) => {
            let inside = access.enter()?;
            reasons.extend(rehearsal::of_process(numbers, &mappings));
            drop(inside);
            for one in &mappings {
                let _inside = access.enter()?;
                reasons.extend(mapping(one));
            }
        }
        Err(error) => reasons.push(format!("its memory map cannot be read: {error}")),
    }
    Ok(reasons)
}

/// What the kernel would take back of System V semaphores at the end of the process, and so at a suspend.
fn undo_of_semaphores() -> Vec<String> {
    let mut reasons: Vec<String> = semaphores::to_take_back()
        .iter()
        .map(|set| {
            format!(
                "the System V semaphore set {set} has operations with SEM_UNDO that the kernel would take back: give back what it holds"
            )
        })
        .collect();
    if semaphores::lost_count() {
        reasons.push("it has used SEM_UNDO on more semaphores than can be kept account of".into());
    }
    reasons
}

/// Child processes that are alive (or not yet waited for).
fn children_of(lower: &[u32]) -> Vec<String> {
    if !has_children() {
        return Vec::new();
    }
    let found = children_of_tasks().unwrap_or_else(children_by_parent);
    let reasons = found.into_iter().filter(|pid| !lower.contains(pid));
    reasons
        .map(|pid| {
            let name = told::by(&format!("/proc/{pid}/comm")).unwrap_or_default();
            format!(
                "it has a child process, {pid} ({}): wait until it has ended",
                name.trim_end()
            )
        })
        .collect()
}

/// Whether any thread of this process has a child: the kernel says so to who asks for the end of one, without taking it.
fn has_children() -> bool {
    // SAFETY: integers only, for which zeros are valid.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let ways = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the kernel fills the structure.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut information, ways) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// As the kernel lists them for each thread; `None` where it does not (CONFIG_PROC_CHILDREN).
fn children_of_tasks() -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(children) => found.extend(numbers(&children)),
            // A thread that has ended meanwhile has given its children to another.
            Err(_) if !task.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

/// Every process that says that this one is its parent.
fn children_by_parent() -> Vec<u32> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| starters::parent(*pid) == Some(own))
        .collect()
}

/// A message queue looks like a file, by its kind and by what is read from it.
fn message_queue(number: RawFd) -> Option<String> {
    const MESSAGE_QUEUES: i64 = 0x1980_0202;
    let mut system = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: fstatfs fills the structure, for which zeros are valid too.
    let kind = unsafe {
        libc::fstatfs(number, system.as_mut_ptr());
        system.assume_init().f_type
    };
    (kind == MESSAGE_QUEUES).then(|| {
        format!("it has a message queue open, descriptor {number}: close it before a checkpoint")
    })
}

fn mapping(mapping: &Mapping) -> Option<String> {
    let what = || {
        if mapping.name.is_empty() {
            "memory".to_owned()
        } else {
            mapping.name.clone()
        }
    };
    if mapping.device_memory {
        return Some(format!(
            "{} at {} is memory of a device: release it before a checkpoint",
            what(),
            mapping.range()
        ));
    }
    if mapping.protection & libc::PROT_EXEC != 0 && !is_upper(mapping.start) {
        return Some(format!(
            "{} at {} is code that was moved to where its system calls are not seen: unmap it before a checkpoint",
            what(),
            mapping.range()
        ));
    }
    if mapping.path().starts_with("/secretmem") {
        return Some(format!(
            "secret memory at {}, which nobody else can read, cannot be carried: unmap it before a checkpoint",
            mapping.range()
        ));
    }
    if mapping.userfault {
        return Some(format!(
            "page faults of {} at {} are handled with userfaultfd, which cannot be carried over a restart",
            what(),
            mapping.range()
        ));
    }
    if !mapping.shared || mapping.inode == 0 {
        return None;
    }
    if mapping.path().starts_with("/dev/shm/") {
        let holder = other_process_that_maps(mapping)?;
        return Some(format!(
            "it shares memory {} with process {holder}: unmap it before a checkpoint",
            mapping.path()
        ));
    }
    match memory::kind(mapping) {
        RegionKind::SystemV => attached_elsewhere(mapping),
        _ if mapping.path().starts_with("anon_inode:") => Some(format!(
            "{} at {} cannot be carried over a restart",
            mapping.name,
            mapping.range()
        )),
        _ => None,
    }
}

/// Another process that maps the same file, as far as this user may see.
fn other_process_that_maps(mapping: &Mapping) -> Option<u32> {
    let own = std::process::id();
    let inode = format!(" {} ", mapping.inode);
    let processes = std::fs::read_dir("/proc").ok()?;
    let mut pids =
        processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        *pid != own
            && std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| {
                maps.lines()
                    .any(|line| line.ends_with(&mapping.name) && line.contains(&inode))
            })
    })
}

/// Whether a System V segment is attached by more than this process.
fn attached_elsewhere(mapping: &Mapping) -> Option<String> {
    let id = mapping.inode as libc::c_int;
    let mut status = std::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure, for which zeros are valid too.
    let attached = unsafe {
        if libc::shmctl(id, libc::IPC_STAT, status.as_mut_ptr()) != 0 {
            return None;
        }
        status.assume_init().shm_nattch
    };
    let all = std::fs::read_to_string("/proc/self/maps").ok()?;
    let word = format!(" {} ", mapping.inode);
    let starts_here =
        |line: &&str| line.contains("/SYSV") && line.contains(&word) && line.contains(" 00000000 ");
    let own = all.lines().filter(starts_here).count() as u64;
    (attached > own).then(|| {
        format!("it shares System V memory segment {id} with another process: detach it before a checkpoint")
    })
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
        assert!(
            children_of(&[])
                .iter()
                .any(|reason| reason.contains("(sleep)"))
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_by_parent().contains(&child.id()));
    }
}
