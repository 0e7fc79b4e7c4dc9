//! Descriptors that no path leads to: pipes, timers, inotify and epoll sets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use stillpoint_image::descriptors::{Watch, Watched};

use super::open::owned;

/// The pipes that have been made, by the number that the image has for them.
#[derive(Default)]
pub struct Pipes {
    made: BTreeMap<u64, Pipe>,
}

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    filled: bool,
}

impl Pipes {
    /// One end of a pipe; the pipe is made when its first end is asked for. An end that nobody asks for
    /// is closed when all are done.
    pub fn end(
        &mut self,
        pipe: u64,
        writes: bool,
        content: &[u8],
        capacity: i32,
    ) -> io::Result<OwnedFd> {
        let pipe = match self.made.entry(pipe) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(make(capacity)?),
        };
        if !content.is_empty() && !pipe.filled {
            // It was in a pipe of this capacity, so it fits without anybody reading.
            File::from(pipe.writer.try_clone()?).write_all(content)?;
            pipe.filled = true;
        }
        if writes {
            pipe.writer.try_clone()
        } else {
            pipe.reader.try_clone()
        }
    }
}

fn make(capacity: i32) -> io::Result<Pipe> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (reader, writer) = (owned(ends[0])?, owned(ends[1])?);
    // SAFETY: F_SETPIPE_SZ takes a number.
    if unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, capacity) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pipe {
        reader,
        writer,
        filled: false,
    })
}

pub fn timer(
    clock: i32,
    settime_flags: i32,
    ticks: u64,
    value: u64,
    interval: u64,
    flags: i32,
) -> io::Result<OwnedFd> {
    const TFD_IOC_SET_TICKS: libc::c_ulong = 0x4008_5400;
    let time = |nanoseconds: u64| libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    };
    // fdinfo tells what is left, so an absolute timer goes on as a relative one.
    let flags_then = settime_flags & !libc::TFD_TIMER_ABSTIME;
    let setting = libc::itimerspec {
        it_interval: time(interval),
        it_value: time(value),
    };
    // SAFETY: the structures live on this stack.
    unsafe {
        let made = owned(libc::timerfd_create(clock, flags))?;
        if value != 0
            && libc::timerfd_settime(
                made.as_raw_fd(),
                flags_then,
                &raw const setting,
                std::ptr::null_mut(),
            ) != 0
        {
            return Err(io::Error::last_os_error());
        }
        if ticks > 0 {
            // Kernels without checkpoint support: the expirations are told with the next one.
            libc::ioctl(made.as_raw_fd(), TFD_IOC_SET_TICKS, &raw const ticks);
        }
        Ok(made)
    }
}

/// Watches under their old numbers: the kernel counts up from 1, so gaps are filled and emptied again.
pub fn inotify(watches: &[Watch], flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: makes a descriptor.
    let set = owned(unsafe { libc::inotify_init1(flags) })?;
    for watch in watches {
        let path = std::ffi::CString::new(watch.path.as_str())?;
        loop {
            // SAFETY: the path is a C string.
            let made =
                unsafe { libc::inotify_add_watch(set.as_raw_fd(), path.as_ptr(), watch.mask) };
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            if made >= watch.descriptor {
                break;
            }
            // SAFETY: removes the watch just made; the event that tells of it is read away below.
            unsafe { libc::inotify_rm_watch(set.as_raw_fd(), made) };
        }
    }
    drain(&set);
    Ok(set)
}

/// Reads away what is waiting.
fn drain(set: &OwnedFd) {
    let mut waiting: libc::c_int = 0;
    let mut buffer = [0u8; 4096];
    // SAFETY: the kernel writes one int, then at most the buffer's length; a read is made only when there is
    // something to read, so that it does not block.
    unsafe {
        while libc::ioctl(set.as_raw_fd(), libc::FIONREAD, &raw mut waiting) == 0 && waiting > 0 {
            if libc::read(set.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) <= 0 {
                return;
            }
        }
    }
}

pub fn watch(set: RawFd, entry: &Watched) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: entry.events,
        u64: entry.data,
    };
    // SAFETY: the structure lives on this stack.
    match unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, entry.number, &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
