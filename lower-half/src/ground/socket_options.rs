//! Options of sockets, and what `poll` tells of them.

use std::os::fd::RawFd;

/// Returns a number that is an option of sockets of all kinds; -1: it has none.
pub fn option(number: RawFd, name: libc::c_int) -> libc::c_int {
    let number = value(number, libc::SOL_SOCKET, name).and_then(|value| value.try_into().ok());
    number.map_or(-1, libc::c_int::from_ne_bytes)
}

/// Returns an option's value, if the socket has this option.
pub fn value(number: RawFd, level: libc::c_int, name: libc::c_int) -> Option<Vec<u8>> {
    let mut value = [0u8; 256];
    let mut bytes = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to the value, which has as many.
    let result = unsafe {
        libc::getsockopt(
            number,
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    (result == 0).then(|| value[..(bytes as usize).min(value.len())].to_vec())
}

/// Returns what `poll` tells of a descriptor.
pub fn events(number: RawFd) -> i16 {
    let mut poll = libc::pollfd {
        fd: number,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: poll reads and writes one structure, which lives on this stack, and does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    poll.revents
}
