//! Host memory is shown to a rank: it gets the file that this lies in, and is told where in it.

use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use stillpoint_gpu_messages::{Answer, send};

/// Says how large the file is, waits until whoever asked is ready for it, and hands it over: beside one byte.
///
/// # Errors
/// Whoever asked is gone.
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
