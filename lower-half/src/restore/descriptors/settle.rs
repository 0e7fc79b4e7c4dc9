//! Position, flags and locks of what has been opened again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use stillpoint_image::descriptors::{Description, DescriptorKind, Lock, LockKind};

/// Position, flags and locks, once the file is open.
pub fn settle(description: &Description, opened: &OwnedFd) -> io::Result<()> {
    let number = opened.as_raw_fd();
    if matches!(description.kind, DescriptorKind::Inherited { .. }) {
        return Ok(());
    }
    // What `open` has not taken up: flags of pipes and of objects made by other calls.
    let settable = libc::O_APPEND | libc::O_NONBLOCK | libc::O_DIRECT | libc::O_NOATIME;
    // SAFETY: these calls take numbers.
    unsafe {
        if description.flags & libc::O_PATH == 0
            && libc::fcntl(number, libc::F_SETFL, description.flags & settable) < 0
        {
            return Err(io::Error::last_os_error());
        }
        let seeks = matches!(
            description.kind,
            DescriptorKind::File { .. }
                | DescriptorKind::Unlinked { .. }
                | DescriptorKind::Memory { .. }
                | DescriptorKind::Directory { .. }
        );
        if seeks
            && description.offset != 0
            && libc::lseek(number, description.offset as i64, libc::SEEK_SET) < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    description
        .locks
        .iter()
        .try_for_each(|lock| take(lock, number))
}

fn take(lock: &Lock, number: RawFd) -> io::Result<()> {
    let range = libc::flock {
        l_type: if lock.write {
            libc::F_WRLCK as i16
        } else {
            libc::F_RDLCK as i16
        },
        l_whence: libc::SEEK_SET as i16,
        l_start: lock.start as i64,
        l_len: lock.end.map_or(0, |end| (end - lock.start + 1) as i64),
        l_pid: 0,
    };
    // SAFETY: the structure lives on this stack.
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
