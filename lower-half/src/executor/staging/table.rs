//! A descriptor table of their own for those threads of staging that work while the application runs. Descriptors that they open take none
//! of the application's numbers, and the application's own `open` does not fail, however many peers or strangers connect.
//!
//! A new table begins as a copy of the process's. Everything in the copy is closed at once: if an end of a pipe stayed open here,
//! its reader would never see it closed. So a value that owns a descriptor must not go from one table to the other. Threads that
//! a thread of this table starts belong to it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::IntoRawFd;

use nix::sched::{CloneFlags, unshare};

use crate::ground::thread;

/// Standard input, output and error.
const STANDARD: usize = 3;

/// Gives the calling thread a table of its own, with nothing in it but the standard streams, which lead nowhere.
///
/// # Errors
/// The system's error, if it has no memory for a table.
pub fn own() -> io::Result<()> {
    unshare(CloneFlags::CLONE_FILES)?;
    // SAFETY: the table is this thread's alone, and no value on this thread's stack owns a descriptor.
    if unsafe { libc::close_range(0, libc::c_uint::MAX, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for _ in 0..STANDARD {
        // They stay open for as long as the table is there.
        let _ = open_null()?.into_raw_fd();
    }
    Ok(())
}

/// Does something on a thread with such a table, and waits for it.
///
/// # Errors
/// Those of [`own`], and no thread to be had.
pub fn apart<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let work = || {
            own()?;
            Ok(work())
        };
        thread::start_in(scope, &format!("stillpoint-{name}"), thread::USUAL, work)?
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("it ended early")))
    })
}

fn open_null() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::thread;

    #[test]
    fn what_is_opened_there_is_not_open_here_and_what_is_closed_here_is_closed() {
        let (mut reader, writer) = io::pipe().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("opened there");
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let there = path.clone();
        let other = thread::spawn(move || {
            own().unwrap();
            let file = File::create(there).unwrap();
            // The first number behind the standard streams, whatever is open here.
            assert_eq!(file.as_raw_fd(), STANDARD as i32);
            ready.send(()).unwrap();
            ends.recv().unwrap();
        });
        is_ready.recv().unwrap();
        let here = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let names: Vec<_> = here
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .collect();
        assert!(!names.contains(&path), "{names:?}");
        drop(writer);
        // The other table holds no end of the pipe.
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        end.send(()).unwrap();
        other.join().unwrap();
    }

    #[test]
    fn work_that_is_done_apart_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let written = apart("test", || std::fs::write(&path, b"there")).unwrap();
        written.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"there");
    }
}
