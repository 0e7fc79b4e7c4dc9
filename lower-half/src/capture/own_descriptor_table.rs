//! Work on a thread with a descriptor table of its own.
//!
//! The kernel drops all of a process's POSIX locks on a file when *any* of its descriptors of that file is closed. But the owner
//! of those locks is the descriptor table, not the process. So code that opens and closes files that the application may have
//! locked runs here, with a copy of the table, in which the application's descriptors have their own numbers.

use std::io;

use crate::ground::thread;

/// Does `work` with a copy of this process's descriptor table. Descriptors that it leaves open are closed when it returns.
///
/// # Errors
/// No thread could be started, or the kernel gives it no table of its own.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let work = || own_table().map(|()| work());
        thread::start_in(scope, "stillpoint-apart", thread::LARGE, work)?
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread of Stillpoint's has ended early")))
    })
}

/// Gives this thread a table of its own. Sandboxes may forbid `unshare`, but let descriptors be closed.
pub fn own_table() -> io::Result<()> {
    const NOTHING: libc::c_uint = libc::c_uint::MAX;
    // SAFETY: the call closes no descriptor, since none has that number; it only gives this thread another table.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            NOTHING,
            NOTHING,
            libc::CLOSE_RANGE_UNSHARE,
        )
    };
    // SAFETY: the call takes flags and touches no memory; it only gives this thread another descriptor table.
    if result == 0 || unsafe { libc::unshare(libc::CLONE_FILES) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn locks_survive_what_is_closed_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let range = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: 0,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // SAFETY: the kernel reads the lock's structure, which lives on this stack.
        let locked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const range) } == 0;
        assert!(locked);
        let held = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks.contains(&format!("POSIX  ADVISORY  WRITE {} ", std::process::id()))
        };
        assert!(held());
        let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
        apart(|| std::mem::forget(File::open(file.path()).unwrap())).unwrap();
        apart(|| drop(File::open(file.path()).unwrap())).unwrap();
        assert!(held());
        assert_eq!(std::fs::read_dir("/proc/self/fd").unwrap().count(), before);
        drop(File::open(file.path()).unwrap());
        assert!(!held(), "why this place exists");
    }
}
