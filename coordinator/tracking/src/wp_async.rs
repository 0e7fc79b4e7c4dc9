//! The kernel keeps track of writes by itself: `userfaultfd` without a thread that answers (`UFFD_FEATURE_WP_ASYNC`, since Linux 6.7).
//!
//! Memory is registered and protected. The first write to a page takes the protection away, also if the kernel writes on behalf of a system
//! call. [`PageMap::written`](super::pagemap::PageMap::written) reports the pages that have lost it, and protects them again.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use linux_raw_sys::general::{uffdio_api, uffdio_range, uffdio_register, uffdio_writeprotect};

/// `_IOWR(0xaa, N, struct ...)` with N 0x3f, 0x00 and 0x06 (linux/userfaultfd.h).
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const API: u64 = 0xaa;
const WP_ASYNC: u64 = 1 << 15;
const REGISTER_WP: u64 = 1 << 1;
const WRITEPROTECT_WP: u64 = 1;
/// Faults in the kernel need no privilege here, since no thread has to answer them.
const USER_MODE_ONLY: libc::c_long = 1;

/// Opens a descriptor to register memory with. Memory stays registered until the descriptor is closed.
///
/// # Errors
/// This kernel has no such descriptors, or none of this kind.
pub fn open() -> io::Result<OwnedFd> {
    let flags = libc::c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK) | USER_MODE_ONLY;
    // SAFETY: the call takes flags, touches no memory, and makes a descriptor.
    let number = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and nothing else owns it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number as i32) };
    let mut api = uffdio_api {
        api: API,
        features: WP_ASYNC,
        ioctls: 0,
    };
    // SAFETY: the kernel reads and fills the structure, which lives on this stack and belongs to this request.
    match unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, &raw mut api) } {
        0 => Ok(descriptor),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets the kernel keep track of a mapping, from the next question for its writes on.
///
/// # Errors
/// Another descriptor handles the mapping's faults, or the kernel does not follow mappings of this kind.
pub fn register(descriptor: RawFd, range: &Range<usize>) -> io::Result<()> {
    let mut register = uffdio_register {
        range: uffdio_range {
            start: range.start as u64,
            len: range.len() as u64,
        },
        mode: REGISTER_WP,
        ioctls: 0,
    };
    // SAFETY: the structure lives on this stack; registration changes only page table entries, and no write fails because of it.
    match unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &raw mut register) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Protects every page of a registered range, whether or not the kernel takes it for protected: before Linux 6.13, a page that has moved to
/// another mapping may be writable and still seem to be protected.
///
/// # Errors
/// The range is not registered.
pub fn protect(descriptor: RawFd, range: &Range<usize>) -> io::Result<()> {
    let mut protect = uffdio_writeprotect {
        range: uffdio_range {
            start: range.start as u64,
            len: range.len() as u64,
        },
        mode: WRITEPROTECT_WP,
    };
    loop {
        // SAFETY: the structure lives on this stack; the request changes only page table entries, and no write fails because of it.
        match unsafe { libc::ioctl(descriptor, UFFDIO_WRITEPROTECT, &raw mut protect) } {
            0 => return Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EAGAIN) => {}
                error => return Err(error),
            },
        }
    }
}
