//! Asks the kernel's socket monitor (`NETLINK_SOCK_DIAG`) about a Unix socket: no other call names the other end.

use std::io;
use std::os::fd::AsRawFd;

use super::owned;

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
const SHUTDOWN: u16 = 6;
/// `struct nlmsghdr`, `struct unix_diag_req`, `struct unix_diag_msg`.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 24;
const MESSAGE_BYTES: usize = 16;

/// A Unix socket, as the monitor shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The inode of the other end, 0 if it is closed, or `None` if there never was one.
    pub peer: Option<u64>,
    /// The closed directions: bit 0: nothing more is received, bit 1: nothing more is sent.
    pub shut: u8,
}

/// Asks about the socket with this inode.
pub fn of(inode: u64) -> io::Result<Diagnosis> {
    // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
    let monitor = owned(unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            NETLINK_SOCK_DIAG,
        )
    })?;
    let request = request(inode as u32);
    let mut answer = [0u8; 4096];
    // SAFETY: the kernel reads the request, and writes at most what the answer holds; both live until the calls return.
    let bytes = unsafe {
        let number = monitor.as_raw_fd();
        if libc::send(number, request.as_ptr().cast(), request.len(), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::recv(number, answer.as_mut_ptr().cast(), answer.len(), 0)
    };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    parse(answer.get(..bytes as usize).unwrap_or(&[]))
}

fn request(inode: u32) -> Vec<u8> {
    let mut request = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
    request.extend(((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    // Family, then: every state, this socket, any cookie.
    request.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    for word in [u32::MAX, inode, SHOW_PEER, u32::MAX, u32::MAX] {
        request.extend(word.to_ne_bytes());
    }
    request
}

fn parse(answer: &[u8]) -> io::Result<Diagnosis> {
    let unclear = || io::Error::other("the kernel's socket monitor gives no clear answer");
    let short = |at: usize| {
        let bytes = answer.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_ne_bytes(bytes))
    };
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    if short(4) != Some(SOCK_DIAG_BY_FAMILY) {
        let error = word(HEADER_BYTES).map_or(0, |error| error.wrapping_neg() as i32);
        return Err(if short(4) == Some(libc::NLMSG_ERROR as u16) && error > 0 {
            io::Error::from_raw_os_error(error)
        } else {
            unclear()
        });
    }
    let end = word(0).ok_or_else(unclear)? as usize;
    let mut found = Diagnosis::default();
    let mut at = HEADER_BYTES + MESSAGE_BYTES;
    while at + 4 <= end {
        let (bytes, kind) = (short(at).ok_or_else(unclear)?, short(at + 2));
        match kind {
            Some(PEER) => found.peer = Some(u64::from(word(at + 4).ok_or_else(unclear)?)),
            Some(SHUTDOWN) => found.shut = *answer.get(at + 4).ok_or_else(unclear)?,
            _ => {}
        }
        at += usize::from(bytes).max(4).next_multiple_of(4);
    }
    Ok(found)
}
