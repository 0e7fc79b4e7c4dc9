//! Makes the entries of epoll sets again, when every number leads to its descriptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use stillpoint_image::descriptors::Watched;

use super::open::owned;

/// Makes the entries of the set `number`.
pub fn watch(number: RawFd, watched: &[Watched]) -> io::Result<()> {
    // An entry that has fired once and for all is made to fire while it is the only one.
    let (spent, others): (Vec<&Watched>, Vec<&Watched>) =
        watched.iter().partition(|entry| is_spent(entry));
    for entry in spent {
        add(
            number,
            entry,
            entry.events | (libc::EPOLLIN | libc::EPOLLOUT) as u32,
        )?;
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the kernel writes at most one event, which lives on this stack, and does not wait.
        if unsafe { libc::epoll_wait(number, &raw mut event, 1, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    others
        .into_iter()
        .try_for_each(|entry| add(number, entry, entry.events))
}

/// Whether an `EPOLLONESHOT` entry has fired: the kernel has then cleared its events.
pub fn is_spent(entry: &Watched) -> bool {
    let always = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
    entry.events & libc::EPOLLONESHOT as u32 != 0 && entry.events & always == 0
}

fn add(set: RawFd, entry: &Watched, events: u32) -> io::Result<()> {
    let Some(through) = entry.through else {
        return control(set, entry, events);
    };
    // The number now leads elsewhere, or nowhere. It leads to the watched description only while the entry is made.
    let now = match duplicate(entry.number) {
        Ok(now) => Some(now),
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => None,
        Err(error) => return Err(error),
    };
    put(through, entry.number)?;
    let made = control(set, entry, events);
    match now {
        Some((now, flags)) => {
            // SAFETY: both are open, and the number gets back the file that it led to.
            if unsafe { libc::dup3(now.as_raw_fd(), entry.number, flags) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        None => {
            // SAFETY: the number led to no file that could be duplicated before; what is closed is the duplicate that `put` has put there.
            unsafe { libc::close(entry.number) };
        }
    }
    made
}

/// Duplicates a descriptor; also returns the original's flags.
fn duplicate(number: RawFd) -> io::Result<(OwnedFd, i32)> {
    // SAFETY: these calls take numbers and touch no memory; the duplicate belongs to nothing else.
    unsafe {
        let flags = libc::fcntl(number, libc::F_GETFD);
        let made = owned(libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3))?;
        let close_on_exec = flags & libc::FD_CLOEXEC != 0;
        Ok((made, if close_on_exec { libc::O_CLOEXEC } else { 0 }))
    }
}

fn put(from: RawFd, onto: RawFd) -> io::Result<()> {
    // SAFETY: the file under this number has been duplicated, or there was none, so nothing is lost; no value owns the number.
    match unsafe { libc::dup3(from, onto, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn control(set: RawFd, entry: &Watched, events: u32) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events,
        u64: entry.data,
    };
    // SAFETY: the kernel reads the event, which lives on this stack.
    match unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, entry.number, &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
