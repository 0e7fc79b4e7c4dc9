//! What `/proc` tells, read so that the application does not notice: an open file takes a descriptor, and its `open` would not give the lowest number that is
//! free. So a thread with a descriptor table of its own opens and reads, for a moment: a process of the application's may have to have one thread (`aside`).
//!
//! Whatever is opened while the application runs is opened here, or put out of its way ([`super::unnoticed::out_of_the_way`]); a test looks for what is not.

use std::io;

use super::space;

/// The text of a file of `/proc`. A thread's name in it may be any bytes; what is not UTF-8 is replaced.
pub fn by(path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bytes(path)?).into_owned())
}

/// The bytes of a file of `/proc`. (`thread-self` is another thread's.)
pub fn bytes(path: &str) -> io::Result<Vec<u8>> {
    apart(|| std::fs::read(path))
}

/// Does something on a thread whose descriptors are nobody else's; on this one if there is no such thread to be had, or its
/// addresses may be too many (`RLIMIT_AS`).
pub fn apart<T: Send>(work: impl Fn() -> T + Sync) -> T {
    // A thread takes addresses, for more than its stack.
    if space::is_limited() {
        return work();
    }
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("stillpoint-told".to_owned())
            .stack_size(256 << 10)
            .spawn_scoped(scope, || empty_table().then(&work));
        thread.ok()?.join().ok().flatten()
    });
    done.unwrap_or_else(work)
}

/// Gives this thread a table of its own without a descriptor: an end of a pipe that stayed open here would never be closed for whoever reads from it.
fn empty_table() -> bool {
    // SAFETY: nothing of this thread's owns a descriptor. Where the kernel knows no such flag, or a sandbox forbids the call, nothing is closed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            0,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_UNSHARE,
        )
    };
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn what_is_read_takes_no_descriptor_here() {
        let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let listed = by("/proc/self/status").unwrap();
        assert!(listed.starts_with("Name:"), "{listed}");
        assert!(bytes("/no/such/file").is_err());
        assert_eq!(std::fs::read_dir("/proc/self/fd").unwrap().count(), before);
        let there = apart(|| std::fs::read_dir("/proc/thread-self/fd").map(Iterator::count));
        assert!(there.unwrap() < before, "the table is a copy");
    }

    /// Files that open what they read while the application stands still, before it begins, or on a thread with a table of its own.
    const OTHERWISE: &[&str] = &[
        "capture",
        "restore",
        "launch",
        "loader",
        "executor/node.rs",
        "executor/files.rs",
        "executor/staging",
        "gate/table/page.rs",
        "gate/table/tests.rs",
        "ground/told.rs",
        "threads/interrupted.rs",
        "ground/elf.rs",
        "ground/input/process.rs",
        "ground/free.rs",
        "ground/starters.rs",
        "ground/children.rs",
        "ground/unnoticed.rs",
        "ground/disk",
    ];

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn nothing_is_opened_while_the_application_runs_but_here() {
        let root = Path::new(env!("LOWER_HALF")).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        assert!(files.len() > 150, "{}", files.len());
        for file in files {
            let name = file.strip_prefix(&root).unwrap();
            if OTHERWISE.iter().any(|other| name.starts_with(other)) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let opens = [
                "File::open(",
                "fs::read(",
                "read_to_string(",
                "read_dir(",
                "OpenOptions::",
                "File::create(",
            ];
            let found = opens.iter().find(|opens| code.contains(**opens));
            assert_eq!(found, None, "{}: see the module above", name.display());
        }
    }
}
