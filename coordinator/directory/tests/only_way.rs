//! Files below a checkpoint directory, the registry or a fast tier are opened by this crate only.
//!
//! The test searches the sources that handle them for other ways to open, make, rename or remove files. Sources that do so for files elsewhere are listed,
//! with the place of these files.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose sources handle such files, from the repository's root.
const SEARCHED: [&str; 6] = [
    "coordinator/faults/src",
    "coordinator/src",
    "coordinator/protocol/src",
    "coordinator/image/src",
    "lower-half/src/agent",
    "lower-half/src/executor",
];

/// The ways to reach files without this crate.
const OTHER_WAYS: [&str; 12] = [
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions",
    "DirBuilder",
    "fs::read",
    "fs::write",
    "fs::rename",
    "fs::remove",
    "fs::create",
    "fs::copy",
    "fs::hard_link",
];

/// Source, the most lines of it that go another way, and the files that they open.
const ELSEWHERE: [(&str, usize, &str); 28] = [
    (
        "coordinator/cli/src/reference.rs",
        4,
        "a test, of pages of this repository",
    ),
    ("coordinator/faults/src/lib.rs", 2, "/proc/self/fd"),
    ("coordinator/cli/src/inside.rs", 1, "/proc/self/maps"),
    ("coordinator/cli/src/interrupt.rs", 1, "/proc/self/status"),
    ("lower-half/src/agent/successor.rs", 2, "/dev/null"),
    ("lower-half/src/executor/staging/table.rs", 2, "/dev/null"),
    ("lower-half/src/executor/chunk_table.rs", 3, "/proc/PID/fd"),
    (
        "lower-half/src/executor/files.rs",
        3,
        "/proc, and directories of the application's files",
    ),
    (
        "lower-half/src/executor/staging/mod.rs",
        1,
        "how long files are; none is opened",
    ),
    ("coordinator/cli/src/all/ranks.rs", 9, "/proc"),
    (
        "coordinator/cli/src/all/users.rs",
        1,
        "the names in /run and /tmp; none is opened",
    ),
    ("coordinator/cli/src/check.rs", 2, "/proc and /sys"),
    ("coordinator/src/door.rs", 1, "/proc/net/unix"),
    (
        "coordinator/src/server/hooks.rs",
        1,
        "the names in /etc/stillpoint.d",
    ),
    (
        "coordinator/cli/src/coordinator.rs",
        3,
        "/dev/null and /proc/self/fd",
    ),
    ("coordinator/cli/src/gather/fetched.rs", 1, "/proc/meminfo"),
    (
        "coordinator/cli/src/first_process.rs",
        5,
        "/proc and /dev/null",
    ),
    ("coordinator/cli/src/kernel.rs", 1, "/proc/sys"),
    ("coordinator/cli/src/launch.rs", 1, "/proc/sys"),
    (
        "coordinator/cli/src/man.rs",
        2,
        "manual pages, where the user wants them",
    ),
    (
        "coordinator/cli/src/plan/mod.rs",
        3,
        "the planner's traces and results",
    ),
    ("coordinator/cli/src/mpi.rs", 2, "/proc/PID"),
    ("coordinator/cli/src/program.rs", 2, "the program"),
    ("coordinator/cli/src/title.rs", 3, "/proc/self"),
    ("coordinator/protocol/src/process.rs", 3, "/proc"),
    ("coordinator/protocol/src/namespace.rs", 2, "/proc"),
    (
        "coordinator/image/src/mapped_files.rs",
        1,
        "files that the application mapped",
    ),
    (
        "coordinator/image/src/nearest.rs",
        1,
        "memory of this process, by /proc/self/fd",
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines before the tests, which come last in a file.
fn lines_that_ship(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn files_that_matter_are_opened_here_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![];
    for folder in SEARCHED {
        sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 50, "{} sources", found.len());
    for (listed, ..) in ELSEWHERE {
        assert!(
            root.join(listed).is_file(),
            "{listed} is listed and not there"
        );
    }
    for path in found {
        let name = path
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        if name.contains("/tests") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let others: Vec<&str> = lines_that_ship(&text)
            .filter(|line| OTHER_WAYS.iter().any(|way| line.contains(way)))
            .collect();
        let listed = ELSEWHERE.iter().find(|(listed, ..)| *listed == name);
        let allowed = listed.map_or(0, |(_, allowed, _)| *allowed);
        assert!(
            others.len() <= allowed,
            "{name}: open files with stillpoint_directory, or list where they lie: {others:#?}"
        );
    }
}
