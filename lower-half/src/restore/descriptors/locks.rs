//! Takes locks on files again.
//!
//! The process loses its POSIX locks on a file when it closes any descriptor of that file. So the locks are taken after the last temporary descriptor of the
//! restart has been closed.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use stillpoint_image::descriptors::{Descriptors, Lock, LockKind};
use stillpoint_refusals::{Refusal, refusal};

use super::{open, owned};
use crate::ground::proc_files;
use crate::restore::RestoreError;

/// Returns, for people, the locks that another process holds here. Changes nothing.
pub fn held_elsewhere(table: &Descriptors) -> Vec<Refusal> {
    let mut reasons = Vec::new();
    for description in &table.descriptions {
        let Some(path) = open::path(&description.kind).filter(|_| !description.locks.is_empty())
        else {
            continue;
        };
        // Files that cannot be opened are reported elsewhere.
        let Ok(file) = owned::reopen(path, description.flags) else {
            continue;
        };
        for lock in &description.locks {
            if let Err(error) = test(lock, file.as_raw_fd()) {
                reasons.push(conflict(path, lock, file.as_raw_fd(), &error));
            }
        }
    }
    reasons
}

/// Takes every lock, through the application's descriptor numbers.
pub fn take_all(table: &Descriptors) -> Result<(), RestoreError> {
    for (index, description) in table.descriptions.iter().enumerate() {
        let number = table
            .numbers
            .iter()
            .find(|number| number.description == index);
        let Some(number) = number.map(|number| number.number) else {
            continue;
        };
        for lock in &description.locks {
            take(lock, number).map_err(|error| {
                let name = open::name(&description.kind);
                RestoreError::Refused(conflict(&name, lock, number, &error))
            })?;
        }
    }
    Ok(())
}

fn conflict(name: &str, lock: &Lock, number: RawFd, error: &io::Error) -> Refusal {
    let range = match (lock.kind, lock.start, lock.end) {
        (LockKind::Whole, ..) | (_, 0, None) => "a lock on all".to_owned(),
        (_, start, None) => format!("a lock from byte {start} on"),
        (_, start, Some(end)) => format!("a lock on bytes {start} to {end}"),
    };
    let holder = match holder(lock, number) {
        Some(pid) => {
            let name = proc_files::by(&format!("/proc/{pid}/comm")).unwrap_or_default();
            format!(
                "but process {pid} ({}) holds it now: let that process end first",
                name.trim_end()
            )
        }
        None => {
            "but another process may hold it now: find out which processes use the file".to_owned()
        }
    };
    refusal!(
        LockedFile,
        "the program held {range} of {name}, {holder} ({error})"
    )
}

/// Returns the process that holds the lock; the kernel names it only for POSIX locks.
fn holder(lock: &Lock, number: RawFd) -> Option<i32> {
    let mut range = range(lock);
    // SAFETY: the kernel reads and writes the structure, which lives on this stack.
    let result = unsafe { libc::fcntl(number, libc::F_GETLK, &raw mut range) };
    (result == 0 && i32::from(range.l_type) != libc::F_UNLCK && range.l_pid > 0)
        .then_some(range.l_pid)
}

fn range(lock: &Lock) -> libc::flock {
    libc::flock {
        l_type: if lock.write {
            libc::F_WRLCK as i16
        } else {
            libc::F_RDLCK as i16
        },
        l_whence: libc::SEEK_SET as i16,
        l_start: lock.start as i64,
        l_len: lock.end.map_or(0, |end| (end - lock.start + 1) as i64),
        l_pid: 0,
    }
}

/// Whether the lock could be taken.
fn test(lock: &Lock, number: RawFd) -> io::Result<()> {
    if lock.kind == LockKind::Whole {
        // The lock is released when the descriptor is closed.
        return take(lock, number);
    }
    let mut range = range(lock);
    // SAFETY: the kernel reads and writes the structure, which lives on this stack.
    if unsafe { libc::fcntl(number, libc::F_OFD_GETLK, &raw mut range) } != 0 {
        return Err(io::Error::last_os_error());
    }
    match i32::from(range.l_type) {
        libc::F_UNLCK => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
    }
}

fn take(lock: &Lock, number: RawFd) -> io::Result<()> {
    let range = range(lock);
    // SAFETY: the kernel reads the structure, which lives on this stack.
    let result = unsafe {
        match lock.kind {
            LockKind::Posix => libc::fcntl(number, libc::F_SETLK, &raw const range),
            LockKind::Description => libc::fcntl(number, libc::F_OFD_SETLK, &raw const range),
            LockKind::Whole => libc::flock(
                number,
                libc::LOCK_NB
                    | if lock.write {
                        libc::LOCK_EX
                    } else {
                        libc::LOCK_SH
                    },
            ),
        }
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
