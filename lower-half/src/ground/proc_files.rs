//! Reads `/proc` without the application noticing: an open file takes a descriptor, so that an `open` of the application would not return the lowest free
//! number. A thread with a descriptor table of its own opens and reads instead. It exists only for a moment, because the application may need to be
//! single-threaded (`aside`).
//!
//! Every file that is opened while the application runs is opened here, or moved out of its way ([`super::hidden_child::out_of_the_way`]); a test looks for
//! exceptions.

use std::io;

use super::{space, thread};

/// Returns the text of a file of `/proc`. A thread's name in it may be any bytes; invalid UTF-8 is replaced.
pub fn by(path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bytes(path)?).into_owned())
}

/// Returns the bytes of a file of `/proc`. (`thread-self` is another thread.)
pub fn bytes(path: &str) -> io::Result<Vec<u8>> {
    apart(|| std::fs::read(path))
}

/// Runs an action on a thread whose descriptors belong to it alone; on this thread if no such thread can be started, or its addresses may be too many
/// (`RLIMIT_AS`).
pub fn apart<T: Send>(work: impl Fn() -> T + Sync) -> T {
    // A thread takes addresses, and not only for its stack.
    if space::is_limited() {
        return work();
    }
    let done = std::thread::scope(|scope| {
        let work = || empty_table().then(&work);
        let started = thread::start_in(scope, "stillpoint-told", thread::SMALL, work);
        started.ok()?.join().ok().flatten()
    });
    done.unwrap_or_else(work)
}

/// Gives this thread an empty table of its own: the end of a pipe that stayed open here would keep its readers waiting.
fn empty_table() -> bool {
    // SAFETY: this thread owns no descriptor, so none that is in use is closed. If the kernel does not know the flag, or a sandbox forbids the call, nothing is
    // closed.
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
pub(super) mod tests {
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

    /// Files whose code reads while the application is stopped, before it begins, or on a thread with a table of its own.
    const OTHERWISE: &[&str] = &[
        "capture",
        "restore",
        "launch",
        "loader",
        "executor/chunk_table.rs",
        "executor/files.rs",
        "executor/staging",
        "gate/table/page.rs",
        "gate/table/tests.rs",
        "ground/proc_files.rs",
        "threads/interrupted.rs",
        "ground/elf.rs",
        "ground/input/process.rs",
        "ground/free.rs",
        "ground/starters.rs",
        "ground/children.rs",
        "ground/hidden_child.rs",
        "ground/disk",
    ];

    pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
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
