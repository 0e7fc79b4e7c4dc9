//! Sets position and flags of descriptors that have been opened again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use stillpoint_image::descriptors::{Description, DescriptorKind};

/// Sets position and flags of an open file.
pub fn settle(description: &Description, opened: &OwnedFd) -> io::Result<()> {
    let number = opened.as_raw_fd();
    if let DescriptorKind::Path { .. } = description.kind {
        return Ok(());
    }
    if let DescriptorKind::Inherited { .. } = description.kind {
        return wait_as_before(number, description.flags);
    }
    // Sets the flags that `open` did not get: those of pipes, and of objects made by other calls.
    let settable = libc::O_APPEND | libc::O_NONBLOCK | libc::O_DIRECT | libc::O_NOATIME;
    // SAFETY: these calls take numbers and touch no memory; the descriptor is open (a reference).
    unsafe {
        if libc::fcntl(number, libc::F_SETFL, description.flags & settable) < 0 {
            return Err(io::Error::last_os_error());
        }
        if seeks(&description.kind) && description.offset != 0 {
            if let DescriptorKind::Directory { .. } = description.kind {
                begin_to_read(number);
            }
            if libc::lseek(number, description.offset as i64, libc::SEEK_SET) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Reads a directory from its beginning. ext4 notes where the first read of an open directory began. If that was at the end, ext4 takes a later read from the
/// beginning for its continuation and finds nothing.
fn begin_to_read(number: RawFd) {
    let mut entries = [0u64; 128];
    // SAFETY: the kernel writes at most as many bytes as the array has. A directory that cannot be read has no position to be lost.
    unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            number,
            entries.as_mut_ptr(),
            size_of_val(&entries),
        );
    }
}

/// Makes a stream of the new launch blocking or not, as the application had set it.
fn wait_as_before(number: RawFd, flags: i32) -> io::Result<()> {
    // SAFETY: these calls take numbers and touch no memory.
    let result = unsafe {
        let now = libc::fcntl(number, libc::F_GETFL);
        let wanted = now & !libc::O_NONBLOCK | flags & libc::O_NONBLOCK;
        if now == wanted {
            0
        } else {
            libc::fcntl(number, libc::F_SETFL, wanted)
        }
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether an image carries a descriptor's position.
pub fn seeks(kind: &DescriptorKind) -> bool {
    matches!(
        kind,
        DescriptorKind::File { .. }
            | DescriptorKind::Unlinked { .. }
            | DescriptorKind::Memory { .. }
            | DescriptorKind::Directory { .. }
    )
}
