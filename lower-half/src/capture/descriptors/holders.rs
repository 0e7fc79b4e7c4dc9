//! Other processes that have something open.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use crate::capture::contents::FileKey;
use crate::ground::{children, proc_files, starters};

/// The end of a link in `/proc` to a file that has lost its name.
const NAMELESS: &str = " (deleted)";

/// Returns a process in words for people.
pub fn in_words(pid: u32) -> String {
    let name = proc_files::by(&format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("process {pid} ({})", name.trim_end())
}

/// Returns all processes but this one, as far as this user may see.
fn others() -> impl Iterator<Item = u32> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(move |pid| *pid != own)
}

/// Returns the pipes and sockets that other processes have open, as far as this user may see: the targets of their descriptors, with one
/// process each.
pub fn elsewhere() -> HashMap<String, u32> {
    let mut found = HashMap::new();
    for pid in others() {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let links = links.filter_map(|link| link.into_os_string().into_string().ok());
        let theirs = links.filter(|link| link.starts_with("pipe:") || link.starts_with("socket:"));
        for link in theirs {
            found.entry(link).or_insert(pid);
        }
    }
    found
}

/// Returns a process that also has a file without a name open or mapped, as far as this user may see: a restart would make two files of it.
/// Processes that have started the program and wait for it do not count: they do not come back.
pub fn sharer(key: FileKey) -> Option<u32> {
    let mut passed_over = children::started();
    passed_over.extend(starters::all().into_iter().map(|starter| starter.pid));
    others()
        .filter(|pid| !passed_over.contains(pid))
        .find(|pid| has_open(*pid, key) || has_mapped(*pid, key))
}

fn has_open(pid: u32, key: FileKey) -> bool {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    entries.into_iter().flatten().flatten().any(|entry| {
        let link = std::fs::read_link(entry.path()).unwrap_or_default();
        link.to_string_lossy().ends_with(NAMELESS)
            && std::fs::metadata(entry.path())
                .is_ok_and(|file| (file.dev(), file.ino()) == (key.device, key.inode))
    })
}

/// A line of the file has addresses, protection, offset, device, inode and name.
fn has_mapped(pid: u32, key: FileKey) -> bool {
    let (major, minor) = (libc::major(key.device), libc::minor(key.device));
    let file = format!(" {major:02x}:{minor:02x} {} ", key.inode);
    let maps = proc_files::by(&format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut nameless = maps.lines().filter(|line| line.ends_with(NAMELESS));
    nameless.any(|line| line.contains(&file))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn another_process_with_the_same_nameless_file_is_found() {
        let file = tempfile::tempfile().unwrap();
        let status = file.metadata().unwrap();
        let key = FileKey {
            device: status.dev(),
            inode: status.ino(),
        };
        assert_eq!(sharer(key), None);
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(file.try_clone().unwrap())
            .spawn()
            .unwrap();
        let found = sharer(key);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Some(child.id()));
        assert_eq!(sharer(key), None);
    }
}
