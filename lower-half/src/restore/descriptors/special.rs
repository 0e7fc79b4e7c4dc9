//! Descriptors that no path leads to: pipes and inotify sets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::Watch;

use super::owned::{owned, reopen};
use crate::capture::descriptors::OWN;

/// The pipes that have been made, by the image's number for them.
#[derive(Default)]
pub struct Pipes {
    made: BTreeMap<u64, Pipe>,
}

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    filled: bool,
    /// Whether the original description of the reading and of the writing end has been given out; the application may have others.
    given: [bool; 2],
}

/// An end of a pipe, as the image has it.
pub struct PipeEnd<'a> {
    pub pipe: u64,
    pub writes: bool,
    pub content: Vec<u8>,
    pub packets: &'a [u32],
    pub capacity: i32,
    /// The status flags of the description.
    pub flags: i32,
}

impl Pipes {
    /// Returns one end of a pipe; the pipe is made when its first end is asked for. An end that is never asked for is closed at the end.
    pub fn end(&mut self, end: &PipeEnd<'_>) -> io::Result<OwnedFd> {
        let pipe = match self.made.entry(end.pipe) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(make(end.capacity)?),
        };
        if !end.content.is_empty() && !pipe.filled {
            // It was in a pipe of this capacity, so it fits without a reader.
            fill(&pipe.writer, &end.content, end.packets)?;
            pipe.filled = true;
        }
        let (own, given) = match end.writes {
            true => (&pipe.writer, &mut pipe.given[1]),
            false => (&pipe.reader, &mut pipe.given[0]),
        };
        let both_ways = end.flags & libc::O_ACCMODE == libc::O_RDWR;
        if both_ways || std::mem::replace(given, true) {
            // A further description: opened through /proc.
            let path = format!("{OWN}/fd/{}", own.as_raw_fd());
            return reopen(&path, end.flags & (libc::O_ACCMODE | libc::O_NONBLOCK));
        }
        own.try_clone()
    }

    /// Returns the writing end of a pipe, for the feeder.
    pub fn writer(&self, pipe: u64) -> Option<OwnedFd> {
        self.made.get(&pipe)?.writer.try_clone().ok()
    }
}

fn fill(writer: &OwnedFd, content: &[u8], packets: &[u32]) -> io::Result<()> {
    let mut pipe = File::from(writer.try_clone()?);
    if packets.is_empty() {
        return pipe.write_all(content);
    }
    let mode = |flags: libc::c_int| {
        // SAFETY: F_SETFL takes flags and touches no memory; the writer is open (a reference).
        match unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    mode(libc::O_DIRECT)?;
    let mut rest = content;
    for length in packets {
        let (packet, others) = rest
            .split_at_checked(*length as usize)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        pipe.write_all(packet)?;
        rest = others;
    }
    mode(0)
}

fn make(capacity: i32) -> io::Result<Pipe> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers to the array, which lives on this stack.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (reader, writer) = (owned(ends[0])?, owned(ends[1])?);
    // SAFETY: F_SETPIPE_SZ takes a number and touches no memory of ours; the writer is open.
    if unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, capacity) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pipe {
        reader,
        writer,
        filled: false,
        given: [false; 2],
    })
}

/// Makes watches under their old numbers. The kernel counts up from 1, so gaps are filled and emptied again.
pub fn inotify(watches: &[Watch], flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes flags and makes a descriptor, which `owned` takes over at once.
    let set = owned(unsafe { libc::inotify_init1(flags) })?;
    for watch in watches {
        let path = std::ffi::CString::new(watch.path.as_str())?;
        loop {
            // SAFETY: the path ends in NUL, and the kernel only reads it; the set is open.
            let made =
                unsafe { libc::inotify_add_watch(set.as_raw_fd(), path.as_ptr(), watch.mask) };
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            if made >= watch.descriptor {
                break;
            }
            // SAFETY: the call takes numbers; it removes the watch just made, whose event is read away below.
            unsafe { libc::inotify_rm_watch(set.as_raw_fd(), made) };
        }
    }
    drain(&set);
    Ok(set)
}

/// Reads and discards waiting events.
fn drain(set: &OwnedFd) {
    let mut waiting: libc::c_int = 0;
    let mut buffer = [0u8; 4096];
    // SAFETY: the kernel writes one int, then at most the buffer's length; a read is made only when there is something to read, so it does not block.
    unsafe {
        while libc::ioctl(set.as_raw_fd(), libc::FIONREAD, &raw mut waiting) == 0 && waiting > 0 {
            if libc::read(set.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) <= 0 {
                return;
            }
        }
    }
}
