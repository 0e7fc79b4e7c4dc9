//! Unix sockets that listen at an abstract name, made again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::SocketOption;

use super::owned::owned;
use super::pairs::set;
use crate::gpu::traces;

/// Returns the name for people.
pub fn shown(name: &[u8]) -> String {
    format!("@{}", String::from_utf8_lossy(name).trim_matches('\0'))
}

/// Makes a socket that listens at the name.
pub fn open(socket_type: i32, name: &[u8], options: &[SocketOption]) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
    let socket =
        owned(unsafe { libc::socket(libc::AF_UNIX, socket_type | libc::SOCK_CLOEXEC, 0) })?;
    for option in options {
        set(&socket, option)?;
    }
    match bind(&socket, name) {
        // The name of a GPU's driver has the process's id in it, which two ranks may have that came from two nodes. Only drivers that share memory,
        // which cannot be carried, look for it: the kernel gives another name.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && traces::is_socket(name) => {
            bind(&socket, &[])?;
        }
        bound => bound?,
    }
    // SAFETY: the call takes numbers. The kernel takes its own limit for the number of clients that wait.
    match unsafe { libc::listen(socket.as_raw_fd(), i32::MAX) } {
        0 => Ok(socket),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives it the name, or one that the kernel chooses for an empty name.
fn bind(socket: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let mut address = libc::sockaddr_un {
        sun_family: libc::AF_UNIX as u16,
        sun_path: [0; 108],
    };
    let place = address.sun_path.get_mut(..name.len());
    let place = place.ok_or(io::ErrorKind::InvalidData)?;
    for (to, byte) in place.iter_mut().zip(name) {
        *to = byte.cast_signed();
    }
    let bytes = std::mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    // SAFETY: the kernel reads `bytes` bytes of the address, which lives on this stack and has as many.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            bytes as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
