//! One description, opened again.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use stillpoint_image::Reader;
use stillpoint_image::descriptors::{Description, DescriptorKind};

use super::Shared;
use super::pairs::End;
use super::special::{inotify, timer};
use crate::capture::descriptors::streams;
use crate::restore::RestoreError;
use crate::restore::objects::Objects;

/// What a descriptor is, in words.
pub fn name(kind: &DescriptorKind) -> String {
    match kind {
        DescriptorKind::Inherited { stream } => format!("standard stream {stream}"),
        DescriptorKind::File { path, .. }
        | DescriptorKind::Directory { path }
        | DescriptorKind::Device { path } => path.clone(),
        DescriptorKind::Unlinked { path, .. } => format!("unlinked file {path}"),
        DescriptorKind::Memory { name, .. } => format!("memory file {name}"),
        DescriptorKind::Pipe { .. } => "a pipe".into(),
        DescriptorKind::SocketPair { .. } => "a socket pair".into(),
        DescriptorKind::EventFd { .. } => "an event counter".into(),
        DescriptorKind::TimerFd { .. } => "a timer".into(),
        DescriptorKind::SignalFd { .. } => "a signal descriptor".into(),
        DescriptorKind::Epoll { .. } => "an epoll set".into(),
        DescriptorKind::Inotify { .. } => "a set of inotify watches".into(),
    }
}

/// Flags that `open` takes again; the others were used up when the file was first opened.
fn open_flags(flags: i32) -> i32 {
    flags
        & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC)
        & !(libc::O_TMPFILE & !libc::O_DIRECTORY)
        | libc::O_CLOEXEC
        | libc::O_NOCTTY
}

fn reopen(path: &str, flags: i32) -> io::Result<OwnedFd> {
    let path = std::ffi::CString::new(path)?;
    // SAFETY: the path is a C string.
    owned(unsafe { libc::open(path.as_ptr(), open_flags(flags)) })
}

/// A descriptor from a number that a system call has just given.
pub fn owned(number: libc::c_int) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number has just been made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The outer error is one of the image, the inner one the system's.
pub fn open(
    description: &Description,
    reader: &Reader,
    objects: &mut Objects,
    shared: &mut Shared,
) -> Result<io::Result<OwnedFd>, RestoreError> {
    let flags = description.flags;
    let file_flags = flags & libc::O_NONBLOCK | libc::O_CLOEXEC;
    Ok(match &description.kind {
        DescriptorKind::Inherited { stream } => inherited(*stream, flags),
        DescriptorKind::File { path, .. }
        | DescriptorKind::Directory { path }
        | DescriptorKind::Device { path } => reopen(path, flags),
        DescriptorKind::Unlinked { content, mode, .. } => {
            let file = objects.file(reader, *content)?;
            let opened = reopen(&format!("/proc/self/fd/{}", file.as_raw_fd()), flags);
            // SAFETY: fchmod touches no memory. A mode that cannot be set concerns nobody: the file has no name.
            unsafe { libc::fchmod(file.as_raw_fd(), *mode as libc::mode_t) };
            opened
        }
        DescriptorKind::Memory { content, seals, .. } => {
            let file = objects.file(reader, *content)?;
            let opened = reopen(&format!("/proc/self/fd/{}", file.as_raw_fd()), flags);
            if *seals & !libc::F_SEAL_SEAL != 0 || *seals == libc::F_SEAL_SEAL {
                // SAFETY: F_ADD_SEALS takes a number.
                unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, *seals) };
            }
            opened
        }
        DescriptorKind::Pipe {
            pipe,
            writes,
            content,
            bytes,
            capacity,
        } => {
            let content = content_of(reader, *content, *bytes)?;
            shared.pipes.end(*pipe, *writes, &content, *capacity)
        }
        DescriptorKind::SocketPair {
            pair,
            second,
            socket_type,
            content,
            bytes,
            messages,
            shut,
            reset,
            options,
        } => shared.pairs.end(&End {
            pair: *pair,
            second: *second,
            socket_type: *socket_type,
            content: content_of(reader, *content, *bytes)?,
            messages,
            shut: *shut,
            reset: *reset,
            options,
        }),
        // SAFETY: these calls make descriptors; what they read lives on this stack.
        DescriptorKind::EventFd { count, semaphore } => unsafe {
            let semaphore = if *semaphore { libc::EFD_SEMAPHORE } else { 0 };
            let made = owned(libc::eventfd(0, file_flags | semaphore));
            made.and_then(|made| {
                if *count > 0 {
                    File::from(made.try_clone()?).write_all(&count.to_ne_bytes())?;
                }
                Ok(made)
            })
        },
        // SAFETY: as above.
        DescriptorKind::SignalFd { mask } => unsafe {
            owned(libc::syscall(libc::SYS_signalfd4, -1, &raw const *mask, 8, file_flags) as i32)
        },
        DescriptorKind::TimerFd {
            clock,
            settime_flags,
            ticks,
            value_nanoseconds,
            interval_nanoseconds,
        } => timer(
            *clock,
            *settime_flags,
            *ticks,
            *value_nanoseconds,
            *interval_nanoseconds,
            file_flags,
        ),
        // SAFETY: as above.
        DescriptorKind::Epoll { .. } => unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) },
        DescriptorKind::Inotify { watches } => inotify(watches, file_flags),
    })
}

fn content_of(reader: &Reader, content: Option<u32>, bytes: u64) -> Result<Vec<u8>, RestoreError> {
    Ok(match content {
        Some(content) => reader.content_bytes(content, bytes)?,
        None => Vec::new(),
    })
}

fn inherited(stream: i32, flags: i32) -> io::Result<OwnedFd> {
    match streams::remembered(stream) {
        // SAFETY: F_DUPFD_CLOEXEC takes a number.
        Some(number) => owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }),
        // This launch has no such stream.
        None => reopen("/dev/null", flags & libc::O_ACCMODE),
    }
}
