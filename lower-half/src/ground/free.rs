//! The memory that is free on this node, within this process's control groups.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{cores, proc_files, space};

/// With less free memory than this, copies are not made: the image's buffers and page tables have to come from it.
const TIGHT: u64 = 64 << 20;

/// The memory that a checkpoint takes for itself in each rank, when it takes as little as possible.
const LEAST: u64 = 6 << 20;

/// Returns the bytes that this rank may still take in its control groups, if a checkpoint needs more: the kernel would end the rank.
pub fn too_little() -> Option<u64> {
    proc_files::apart(in_groups).filter(|left| *left < LEAST)
}

/// Returns the bytes that are left for this rank in its control groups and their parents; `None`: they have no limit.
fn in_groups() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().filter_map(group);
    groups.filter_map(|group| group.left()).min()
}

/// Returns the bytes that this rank may take for copies of its own memory: half of what is free.
pub fn for_copies() -> u64 {
    match left() {
        left if left < TIGHT => 0,
        left => left / 2,
    }
}

/// Returns the bytes that this rank may still take: free memory of the node, and in its control groups and their parents, shared by the ranks of the node. A
/// limit on addresses counts too.
pub fn left() -> u64 {
    let (node, group) = proc_files::apart(|| {
        (
            available(&fs::read_to_string("/proc/meminfo").unwrap_or_default()).unwrap_or(0),
            in_groups(),
        )
    });
    let node = node / cores::ranks_here().max(1) as u64;
    let shared = group.map_or(node, |group| group.min(node));
    space::left().map_or(shared, |space| space.min(shared))
}

/// Whether so little is left that an image has to take as little as possible.
pub fn is_tight() -> bool {
    left() < TIGHT
}

/// Returns the number of threads that can pack an image's pages, out of `most`, given the free memory: each takes 4 MiB.
pub fn workers(most: usize) -> usize {
    let fits = usize::try_from(left() / TIGHT).unwrap_or(usize::MAX);
    most.min(fits.max(1))
}

/// Returns how much memory this node has.
pub fn of_the_node() -> u64 {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut about: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the structure, which lives on this stack.
    match unsafe { libc::sysinfo(&raw mut about) } {
        0 => about.totalram.saturating_mul(about.mem_unit.into()),
        _ => 0,
    }
}

/// Returns how many pages this node has swapped out since it was started. `None`: the kernel does not report it.
pub fn swapped_out() -> Option<u64> {
    let all = proc_files::by("/proc/vmstat").ok()?;
    let out = all.lines().filter(|line| {
        let name = line.split(' ').next();
        matches!(name, Some("pswpout" | "zswpout"))
    });
    Some(
        out.filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok())
            .sum(),
    )
}

/// `MemAvailable:   123456 kB`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

/// A control group that limits memory, and the names of its files.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    /// The directory of the groups.
    root: &'static str,
    path: PathBuf,
    limit: &'static str,
    used: &'static str,
    /// The field in `memory.stat` for memory that files take, and could give back.
    files: &'static str,
}

/// Parses a line of `/proc/self/cgroup`: `4:memory:/path` (version 1), `0::/path` (version 2).
fn group(line: &str) -> Option<Group> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = PathBuf::from(path.trim_start_matches('/'));
    if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        return Some(Group {
            root: "/sys/fs/cgroup/memory",
            path,
            limit: "memory.limit_in_bytes",
            used: "memory.usage_in_bytes",
            files: "total_inactive_file",
        });
    }
    (number == "0" && controllers.is_empty()).then_some(Group {
        root: "/sys/fs/cgroup",
        path,
        limit: "memory.max",
        used: "memory.current",
        files: "inactive_file",
    })
}

impl Group {
    /// Returns the memory that is left for one rank in the group and its parents, or `None` if it is not limited.
    fn left(&self) -> Option<u64> {
        let here = Path::new(self.root).join(&self.path);
        let groups = here
            .ancestors()
            .take_while(|group| group.starts_with(self.root));
        groups
            .filter_map(|group| Some(self.left_in(group)? / ranks_in(group)))
            .min()
    }

    fn left_in(&self, group: &Path) -> Option<u64> {
        let number = |name| -> Option<u64> {
            fs::read_to_string(group.join(name))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        // Version 1 tells a number for no limit, too.
        let limit = number(self.limit).filter(|limit| *limit < of_the_node())?;
        let used = number(self.used)?;
        let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let files = statistics
            .lines()
            .find_map(|line| line.strip_prefix(self.files));
        let files = files
            .and_then(|files| files.trim().parse().ok())
            .unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(files)))
    }
}

/// Returns how many ranks share a group: processes in it and below it that run this process's executable. At least 1.
fn ranks_in(group: &Path) -> u64 {
    let own = executable("self");
    let (mut found, mut next) = (0, vec![group.to_owned()]);
    while let Some(group) = next.pop() {
        let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        let same = processes.lines().filter(|pid| executable(pid) == own);
        found += same.count() as u64;
        let below = fs::read_dir(&group).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        next.extend(below.map(|entry| entry.path()));
    }
    // Children of ranks run it too.
    found.clamp(1, cores::ranks_here().max(1) as u64)
}

/// Returns the device and inode of a process's executable.
fn executable(pid: &str) -> Option<(u64, u64)> {
    let about = fs::metadata(Path::new("/proc").join(pid).join("exe")).ok()?;
    Some((about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let meminfo = "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available(meminfo), Some(2 << 20));
        assert_eq!(available(""), None);
        let one = group("4:cpuset,memory:/slurm/job_7").unwrap();
        assert_eq!(
            (one.root, one.limit),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        );
        assert_eq!(one.path, Path::new("slurm/job_7"));
        let two = group("0::/system.slice/a:b").unwrap();
        assert_eq!(
            (two.limit, two.path.as_path()),
            ("memory.max", Path::new("system.slice/a:b"))
        );
        assert_eq!(group("8:pids:/"), None);
        assert!(for_copies() > 0);
    }

    #[test]
    fn the_tightest_of_the_groups_around_counts_and_files_give_way() {
        let directory = tempfile::tempdir().unwrap();
        let root: &'static str = directory.path().to_str().unwrap().to_owned().leak();
        let inner = directory.path().join("job/step");
        fs::create_dir_all(&inner).unwrap();
        let write = |group: &Path, limit: &str, used: &str, files: &str| {
            fs::write(group.join("memory.max"), limit).unwrap();
            fs::write(group.join("memory.current"), used).unwrap();
            fs::write(
                group.join("memory.stat"),
                format!("anon 5\ninactive_file {files}\n"),
            )
            .unwrap();
        };
        let group = Group {
            root,
            path: PathBuf::from("job/step"),
            ..group("0::/job/step").unwrap()
        };
        assert_eq!(group.left(), None);
        write(&inner, "max\n", "700\n", "0");
        assert_eq!(group.left(), None);
        write(
            directory.path().join("job").as_path(),
            "1000\n",
            "800\n",
            "300",
        );
        assert_eq!(group.left(), Some(500));
        write(&inner, "400\n", "390\n", "0");
        assert_eq!(group.left(), Some(10));
    }
}
