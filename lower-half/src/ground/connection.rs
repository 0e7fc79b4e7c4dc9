//! The connection to a launcher that passes it by number: a descriptor that the environment names (MPICH's `PMI_FD`) and MPI looks for at its start. An image's
//! descriptors may have that number, so in a restart the connection is moved to another.

use std::io;
use std::os::fd::RawFd;

/// The variables that name such a descriptor.
const NAMED_BY: [&str; 1] = ["PMI_FD"];

/// Moves the connection to a number above `highest`, and updates its variable.
///
/// # Errors
/// There is no such number.
///
/// # Safety
/// As [`std::env::set_var`]: no other thread may look at the environment.
pub unsafe fn move_above(highest: RawFd) -> io::Result<()> {
    for variable in NAMED_BY {
        let named = std::env::var(variable).ok();
        let Some(number) = named.and_then(|text| text.parse::<RawFd>().ok()) else {
            continue;
        };
        // SAFETY: the call takes numbers and touches no memory.
        let moved = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, highest.max(2) + 1) };
        if moved < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the caller says that no other thread looks at the environment; name and value contain neither NUL nor `=`.
        unsafe { std::env::set_var(variable, moved.to_string()) };
    }
    Ok(())
}
