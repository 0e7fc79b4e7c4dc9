//! Devices that may write to this process's memory by themselves: network adapters, GPUs, and drivers that share memory between
//! processes without a mapping. These writes cause no page faults. So if there is such a device, no pages are left to a child
//! process, and pages count as unchanged only if they have been hashed while all threads stand still.
//!
//! This is a rule, not a list of adapters: it covers every device that either half of this process has open or mapped, except those that
//! are known to be harmless.

use std::fs;
use std::path::Path;

use super::maps;
use crate::gpu::held;

/// Devices that write only where they are told to, and only during a system call.
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

/// Returns whether one may have written to memory at any time: a device that was closed meanwhile, to be opened again later, has left no
/// other trace.
pub fn may_have_written() -> bool {
    may_write() || held::may_have_written()
}

/// Returns whether there is such a device, also if that cannot be found out.
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
