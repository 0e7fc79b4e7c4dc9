//! Opens one description again.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::{Description, DescriptorKind};

use super::owned::{owned, reopen};
use super::pairs::End;
use super::special::{PipeEnd, inotify};
use super::timer::Timer;
use super::unconnected::{self, Unconnected};
use super::{Shared, outward};
use crate::capture::descriptors::{OWN, streams};
use crate::restore::RestoreError;
use crate::restore::content_source::Supply;
use crate::restore::objects::Objects;

/// Describes a descriptor, for people.
pub fn name(kind: &DescriptorKind) -> String {
    match kind {
        DescriptorKind::Inherited { stream } => format!("standard stream {stream}"),
        DescriptorKind::File { path, .. }
        | DescriptorKind::Directory { path }
        | DescriptorKind::Path { path }
        | DescriptorKind::Device { path } => path.clone(),
        DescriptorKind::Unlinked { path, .. } => format!("unlinked file {path}"),
        DescriptorKind::Memory { name, .. } => format!("memory file {name}"),
        DescriptorKind::Pipe { .. } => "a pipe".into(),
        DescriptorKind::SocketPair { .. } => "a socket pair".into(),
        DescriptorKind::UnconnectedSocket { name, .. } => {
            format!("a socket at {}", unconnected::shown(name))
        }
        DescriptorKind::LostConnection { .. } => "a TCP connection that a restart loses".into(),
        DescriptorKind::EventFd { .. } => "an event counter".into(),
        DescriptorKind::TimerFd { .. } => "a timer".into(),
        DescriptorKind::SignalFd { .. } => "a signal descriptor".into(),
        DescriptorKind::Epoll { .. } => "an epoll set".into(),
        DescriptorKind::Inotify { .. } => "a set of inotify watches".into(),
    }
}

/// Returns the path that leads to it again, if there is one.
pub fn path(kind: &DescriptorKind) -> Option<&str> {
    match kind {
        DescriptorKind::File { path, .. }
        | DescriptorKind::Directory { path }
        | DescriptorKind::Path { path }
        | DescriptorKind::Device { path } => Some(path),
        DescriptorKind::Inherited { .. }
        | DescriptorKind::Unlinked { .. }
        | DescriptorKind::Memory { .. }
        | DescriptorKind::Pipe { .. }
        | DescriptorKind::SocketPair { .. }
        | DescriptorKind::UnconnectedSocket { .. }
        | DescriptorKind::LostConnection { .. }
        | DescriptorKind::EventFd { .. }
        | DescriptorKind::TimerFd { .. }
        | DescriptorKind::SignalFd { .. }
        | DescriptorKind::Epoll { .. }
        | DescriptorKind::Inotify { .. } => None,
    }
}

/// Opens another description of a file that is open here. The path is a link, which `O_NOFOLLOW` (`shm_open` sets it) would not follow.
fn again(file: &File, flags: i32) -> io::Result<OwnedFd> {
    let path = format!("{OWN}/fd/{}", file.as_raw_fd());
    reopen(&path, flags & !libc::O_NOFOLLOW)
}

fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    // SAFETY: fchmod takes numbers and touches no memory; the file is open (a reference).
    match unsafe { libc::fchmod(file.as_raw_fd(), mode as libc::mode_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a signalfd.
fn signals(mask: u64, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the mask's 8 bytes, which live on this stack; the call makes a descriptor, which `owned` takes over.
    unsafe { owned(libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, 8, flags) as i32) }
}

/// Makes an eventfd with its count.
fn event(count: u64, semaphore: bool, flags: i32) -> io::Result<OwnedFd> {
    let semaphore = if semaphore { libc::EFD_SEMAPHORE } else { 0 };
    // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
    let made = unsafe { owned(libc::eventfd(0, flags | semaphore)) }?;
    if count > 0 {
        File::from(made.try_clone()?).write_all(&count.to_ne_bytes())?;
    }
    Ok(made)
}

/// Opens a file without a name again, with its mode.
fn again_with_mode(file: &File, flags: i32, mode: u32) -> io::Result<OwnedFd> {
    let opened = again(file, flags)?;
    set_mode(file, mode)?;
    Ok(opened)
}

/// Opens a description. The outer error is one of the image, the inner one the system's.
pub fn open(
    description: &Description,
    supply: &dyn Supply,
    objects: &mut Objects,
    shared: &mut Shared,
) -> Result<io::Result<OwnedFd>, RestoreError> {
    let flags = description.flags;
    let file_flags = flags & libc::O_NONBLOCK | libc::O_CLOEXEC;
    Ok(match &description.kind {
        DescriptorKind::Inherited { stream } => inherited(*stream, flags),
        DescriptorKind::File { path, .. }
        | DescriptorKind::Directory { path }
        | DescriptorKind::Path { path }
        | DescriptorKind::Device { path } => reopen(path, flags),
        DescriptorKind::Unlinked { content, mode, .. } => {
            again_with_mode(objects.file(supply, *content)?, flags, *mode)
        }
        DescriptorKind::Memory {
            content,
            seals,
            mode,
            ..
        } => {
            let file = objects.file(supply, *content)?;
            again_with_mode(file, flags, *mode)
                .and_then(|opened| seal(file, *seals).map(|()| opened))
        }
        DescriptorKind::Pipe {
            pipe,
            writes,
            content,
            bytes,
            packets,
            capacity,
        } => shared.pipes.end(&PipeEnd {
            pipe: *pipe,
            writes: *writes,
            content: content_of(supply, *content, *bytes)?,
            packets,
            capacity: *capacity,
            flags,
        }),
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
            content: content_of(supply, *content, *bytes)?,
            messages,
            shut: *shut,
            reset: *reset,
            options,
        }),
        DescriptorKind::UnconnectedSocket {
            family,
            socket_type,
            protocol,
            listens,
            name,
            peer,
            mode,
            options,
        } => Unconnected {
            family: *family,
            socket_type: *socket_type,
            protocol: *protocol,
            listens: *listens,
            name,
            peer,
            mode: *mode,
            options,
        }
        .open(),
        DescriptorKind::LostConnection {
            family,
            told,
            options,
        } => outward::open(*family, *told, options),
        DescriptorKind::EventFd { count, semaphore } => event(*count, *semaphore, file_flags),
        DescriptorKind::SignalFd { mask } => signals(*mask, file_flags),
        DescriptorKind::TimerFd {
            clock,
            settime_flags,
            ticks,
            value_nanoseconds,
            interval_nanoseconds,
        } => Timer {
            clock: *clock,
            settime_flags: *settime_flags,
            ticks: *ticks,
            value: *value_nanoseconds,
            interval: *interval_nanoseconds,
        }
        .start(file_flags),
        // SAFETY: the call takes flags and makes a descriptor, which `owned` takes over at once.
        DescriptorKind::Epoll { .. } => unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) },
        DescriptorKind::Inotify { watches } => inotify(watches, file_flags),
    })
}

fn content_of(
    supply: &dyn Supply,
    content: Option<u32>,
    bytes: u64,
) -> Result<Vec<u8>, RestoreError> {
    match content {
        Some(content) => supply.bytes(content, bytes),
        None => Ok(Vec::new()),
    }
}

/// Seals a memory file as it was; several of its descriptions may ask for the same seals.
fn seal(file: &File, seals: i32) -> io::Result<()> {
    // SAFETY: these calls take numbers and touch no memory; the file is open (a reference).
    let result = unsafe {
        match libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) {
            now if now == seals => 0,
            _ => libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals),
        }
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn inherited(stream: i32, flags: i32) -> io::Result<OwnedFd> {
    match streams::remembered(stream) {
        // SAFETY: F_DUPFD_CLOEXEC takes a number and makes a descriptor, which `owned` takes over at once.
        Some(number) => owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }),
        // This launch has no such stream.
        None => reopen("/dev/null", flags & libc::O_ACCMODE),
    }
}
