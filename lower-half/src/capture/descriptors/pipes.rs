//! Pipes with both ends in this process, or with the other end closed.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_refusals::{Refusal, refusal};

use super::holders;
use super::{All, OpenDescriptor, owned};
use crate::capture::contents::Contents;
use crate::ground::child_delay::ENDS;
use crate::ground::input;

/// Describes an end of a pipe, or says why it cannot be carried.
pub fn describe(
    open: &OpenDescriptor,
    all: &All<'_>,
    contents: &mut Contents,
) -> Result<DescriptorKind, Refusal> {
    if !open.link.starts_with("pipe:") {
        return Err(refusal!(
            OpenPipe,
            "the named pipe {}, whose other end may be anywhere: close it before a checkpoint",
            open.link
        ));
    }
    let writes = open.flags & libc::O_ACCMODE == libc::O_WRONLY;
    let other_end = all.of_inode(open.status.st_ino).find(|other| {
        other.key() == open.key() && (other.flags & libc::O_ACCMODE == libc::O_WRONLY) != writes
    });
    if other_end.is_none() && !open.is_scratch() && !is_fed(open) {
        held_elsewhere(open, all)?;
    }
    let failed = |what: &str, error: io::Error| {
        refusal!(
            UnclearDescriptor,
            "a pipe whose {what} cannot be told: {error}"
        )
    };
    // SAFETY: F_GETPIPE_SZ has no argument.
    let capacity = unsafe { libc::fcntl(open.number, libc::F_GETPIPE_SZ) };
    if capacity < 0 {
        return Err(failed("capacity", io::Error::last_os_error()));
    }
    // The contents of a pipe go with its reading end; without one, they are never read.
    let pieces = if writes {
        Vec::new()
    } else {
        peek(open.number, capacity).map_err(|error| failed("content", error))?
    };
    let in_packets = pieces.len() > 1
        || all
            .of_inode(open.status.st_ino)
            .any(|other| other.key() == open.key() && other.flags & libc::O_DIRECT != 0);
    let packets = match in_packets {
        true => pieces.iter().map(|piece| piece.len() as u32).collect(),
        false => Vec::new(),
    };
    let bytes = pieces.concat();
    let length = bytes.len() as u64;
    let content = (!bytes.is_empty()).then(|| contents.add_bytes(&open.link, bytes));
    Ok(DescriptorKind::Pipe {
        pipe: open.status.st_ino,
        writes,
        content,
        bytes: length,
        packets,
        capacity,
    })
}

/// Returns whether it is the program's standard input, whose writing end stands still.
fn is_fed(open: &OpenDescriptor) -> bool {
    let key = open.key();
    input::holds(key.device, key.inode)
}

/// Fails if another process has the other end.
fn held_elsewhere(open: &OpenDescriptor, all: &All) -> Result<(), Refusal> {
    /// The number of looks: one look does not find a process that ends meanwhile, but a later one may find a process that it has started.
    const LOOKS: u32 = 3;
    for look in 0..LOOKS {
        if !has_other_end(open, all) {
            return Ok(());
        }
        let holder = match look {
            0 => all.holder(&[&open.link]),
            _ => holders::elsewhere().get(&open.link).copied(),
        };
        if let Some(holder) = holder {
            let holder = holders::in_words(holder);
            return Err(refusal!(
                OpenPipe,
                "a pipe whose other end {holder} has: {ENDS} before a checkpoint"
            ));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(refusal!(
        OpenPipe,
        "a pipe whose other end another process has, which this user may not look at: {ENDS} before a checkpoint"
    ))
}

/// Asks the kernel whether the other end is open anywhere.
fn has_other_end(open: &OpenDescriptor, all: &All) -> bool {
    let gone = match open.flags & libc::O_ACCMODE {
        libc::O_RDONLY => libc::POLLHUP,
        libc::O_WRONLY => libc::POLLERR,
        // It is its own other end.
        _ => return all.holder(&[&open.link]).is_some(),
    };
    let mut watched = libc::pollfd {
        fd: open.number,
        events: 0,
        revents: 0,
    };
    // SAFETY: poll reads and writes one structure, which lives on this stack, and does not wait.
    unsafe { libc::poll(&raw mut watched, 1, 0) >= 0 && watched.revents & gone == 0 }
}

/// Copies the contents of a pipe without taking them out: all at once, or packet by packet if they were written so.
fn peek(number: RawFd, capacity: i32) -> io::Result<Vec<Vec<u8>>> {
    let mut waiting: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int, which lives on this stack.
    if unsafe { libc::ioctl(number, libc::FIONREAD, &raw mut waiting) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if waiting == 0 {
        return Ok(Vec::new());
    }
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers to the array, which lives on this stack.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (reader, writer) = (owned(ends[0])?, owned(ends[1])?);
    // SAFETY: these calls touch no memory of ours. tee duplicates references to the pipe's pages, and both descriptors are open.
    let copied = unsafe {
        if libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, capacity) < capacity {
            return Err(io::Error::last_os_error());
        }
        libc::tee(
            number,
            writer.as_raw_fd(),
            waiting as usize,
            libc::SPLICE_F_NONBLOCK,
        )
    };
    if copied < 0 {
        return Err(io::Error::last_os_error());
    }
    if copied != waiting as isize {
        return Err(io::Error::other(format!(
            "{copied} of {waiting} bytes could be copied"
        )));
    }
    drop(writer);
    let mut reader = std::fs::File::from(reader);
    let mut pieces = Vec::new();
    loop {
        let mut piece = vec![0; waiting as usize];
        match reader.read(&mut piece)? {
            0 => return Ok(pieces),
            bytes => piece.truncate(bytes),
        }
        pieces.push(piece);
    }
}
