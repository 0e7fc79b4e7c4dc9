//! Access to host memory for a rank: it gets the file behind the memory, and the offsets in it.

use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use stillpoint_gpu_messages::{Answer, send};

/// Sends the size of the file, waits until the rank is ready for it, and passes the file descriptor beside one byte.
///
/// # Errors
/// The rank is gone.
pub fn hand(file: &File, bytes: u64, from: &mut impl Read, mut to: &UnixStream) -> io::Result<()> {
    send(&mut to, &Answer::Arena { bytes })?;
    from.read_exact(&mut [0])?;
    let files = [file.as_raw_fd()];
    let beside = [ControlMessage::ScmRights(&files)];
    let sent = sendmsg::<()>(
        to.as_raw_fd(),
        &[IoSlice::new(&[1])],
        &beside,
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
    match sent? {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}
