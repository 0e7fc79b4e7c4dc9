//! Page faults of this process, including those of the kernel on behalf of a system call (`userfaultfd`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The request that /dev/userfaultfd takes (linux/userfaultfd.h).
const NEW: libc::c_ulong = 0xaa00;

/// Opens a descriptor that reports page faults.
///
/// # Errors
/// This kernel has none, or gives it only to processes with CAP_SYS_PTRACE (sysctl vm.unprivileged_userfaultfd, /dev/userfaultfd).
pub fn open() -> io::Result<OwnedFd> {
    let flags = libc::c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK);
    // SAFETY: the call takes flags, touches no memory, and makes a descriptor.
    let mut number = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    if number < 0 {
        let refused = io::Error::last_os_error();
        let Ok(device) = File::open("/dev/userfaultfd") else {
            return Err(refused);
        };
        // SAFETY: the request takes flags, touches no memory, and makes a descriptor; `device` is open.
        number = unsafe { libc::ioctl(device.as_raw_fd(), NEW, flags) }.into();
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: the descriptor has just been made by one of the two calls, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}
