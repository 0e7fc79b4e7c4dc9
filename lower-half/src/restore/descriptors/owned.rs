//! Descriptors that a system call has just made.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Returns a descriptor for a number that a system call has just returned.
pub fn owned(number: libc::c_int) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every caller passes a number that has just been made for it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Opens a path with the flags of a descriptor that led there.
pub fn reopen(path: &str, flags: i32) -> io::Result<OwnedFd> {
    let path = std::ffi::CString::new(path)?;
    // SAFETY: the path ends in NUL; the call makes a descriptor, which `owned` takes over at once.
    owned(unsafe { libc::open(path.as_ptr(), open_flags(flags)) })
}

/// Returns the flags that `open` takes again; the others had their effect when the file was first opened. `O_TMPFILE`, which contains `O_DIRECTORY`, is still
/// reported for a file that was made with it.
fn open_flags(flags: i32) -> i32 {
    let unnamed = if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        libc::O_TMPFILE
    } else {
        0
    };
    flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | unnamed)
        | libc::O_CLOEXEC
        | libc::O_NOCTTY
}
