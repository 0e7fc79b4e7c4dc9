//! Messages of an agent to the user, on the rank's stderr.
//!
//! Descriptor 2 belongs to the application: it may have closed it, and another file may have its number by now. So a message is written
//! only if the descriptor leads to the same file as when the rank joined its job.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use nix::sys::stat::{FileStat, fstat};

use crate::ground::say;

/// Device and inode of stderr at the start.
static STDERR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// Notes the file that stderr leads to.
pub fn remember() {
    // A process that joins again, after `execve`, is another one.
    let _ = STDERR.set(stderr());
}

fn stderr() -> Option<(u64, u64)> {
    // SAFETY: the borrow is used only to ask for the file's inode; if the number is not open, that is an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(2) };
    let about: FileStat = fstat(descriptor).ok()?;
    Some((about.st_dev, about.st_ino))
}

/// Says one line.
pub fn say(text: &str) {
    if let Some(Some(then)) = STDERR.get()
        && stderr() == Some(*then)
    {
        // A reader that has gone cannot be told.
        say::line(text);
    }
}
