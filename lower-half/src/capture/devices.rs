//! Devices that may write to this process's memory by themselves: network adapters, GPUs, what shares memory between processes without
//! the kernel's mapping it. Nobody sees such a write as a page fault. So where there is one, nothing is set apart, and nothing is taken for
//! unchanged that has not been hashed while everybody stands still.
//!
//! It is a rule and no list of adapters: whatever device this process has open or mapped, either half of it, but for those that are known to do nothing.

use std::fs;
use std::path::Path;

use super::maps;
use crate::gpu::held;

/// Devices that write nowhere but where they are told to, while a system call lasts.
const HARMLESS: [&str; 11] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/console",
    "/dev/ptmx",
    "/dev/pts/",
    "/dev/shm/",
    "/dev/mqueue/",
];

fn is_one(path: &str) -> bool {
    path.starts_with("/dev/") && !HARMLESS.iter().any(|harmless| path.starts_with(harmless))
}

/// Whether one may have written to memory at some time: one that has been let go of meanwhile, to be had again later, has left no other trace.
pub fn may_have_written() -> bool {
    may_write() || held::may_have_written()
}

/// Whether there is one; also where that cannot be found out.
pub fn may_write() -> bool {
    let Ok(mappings) = maps::without_details() else {
        return true;
    };
    mappings.iter().any(|mapping| is_one(mapping.path())) || open(Path::new("/proc/self/fd"))
}

fn open(descriptors: &Path) -> bool {
    let Ok(descriptors) = fs::read_dir(descriptors) else {
        return true;
    };
    let targets = descriptors
        .flatten()
        .filter_map(|one| fs::read_link(one.path()).ok());
    targets
        .into_iter()
        .any(|target| is_one(&target.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whatever_is_not_known_to_be_harmless_may_write() {
        for device in [
            "/dev/infiniband/uverbs0",
            "/dev/nvidia0",
            "/dev/xpmem",
            "/dev/something",
        ] {
            assert!(is_one(device), "{device}");
        }
        for other in [
            "/dev/null",
            "/dev/pts/3",
            "/dev/shm/vader",
            "/home/dev/x",
            "socket:[1]",
            "anon_inode:[eventpoll]",
        ] {
            assert!(!is_one(other), "{other}");
        }
        let directory = tempfile::tempdir().unwrap();
        symlink("/dev/null", directory.path().join("0")).unwrap();
        assert!(!open(directory.path()));
        symlink("/dev/infiniband/uverbs1", directory.path().join("1")).unwrap();
        assert!(open(directory.path()));
        assert!(open(&directory.path().join("nowhere")));
    }
}
