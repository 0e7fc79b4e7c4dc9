//! The messages between a rank and the process that feeds its standard input.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::passed::Passed;

/// The longest message, and the largest number of bytes behind it.
const MOST_WORDS: u64 = 1 << 20;
const MOST_BYTES: u64 = 1 << 40;

/// Messages from the rank.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Read on until the end, or until nothing more comes, and feed nothing until this connection is closed.
    Hold,
    /// The bytes that have been read and not been fed.
    Ahead,
    /// Compare the input with the bytes that had passed in an earlier one.
    Compare(Passed),
    /// Begin to feed the pipe whose writing end comes with this: first the bytes behind this message, then the input, unless the earlier one had `ended`.
    Feed { ended: bool },
}

/// Messages from the process that feeds.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Held(Stand),
    /// The bytes follow this message.
    Ahead,
    Compared(Found),
    Feeds,
}

/// The state of an input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stand {
    pub passed: Passed,
    /// Set when its end has been read.
    pub ended: bool,
    /// Bytes that have been read and not been fed.
    pub ahead: u64,
}

/// The result of comparing an input with an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// It begins with the bytes that had passed, and these have been read.
    Same,
    Other,
    Empty,
    /// Nothing has come yet.
    Silent,
    /// It begins like the earlier one, for longer than it was kept, and then differs.
    Changed,
}

/// Sends a message, a descriptor with it, and bytes behind it.
///
/// # Errors
/// The other end is gone.
pub fn send(
    to: &UnixStream,
    words: &impl Serialize,
    bytes: &[u8],
    file: Option<RawFd>,
) -> io::Result<()> {
    let words = serde_json::to_vec(words)?;
    let lengths = [words.len() as u64, bytes.len() as u64].map(u64::to_le_bytes);
    let lengths = lengths.as_flattened();
    let files: Vec<RawFd> = file.into_iter().collect();
    let beside = [ControlMessage::ScmRights(&files)];
    let beside = if files.is_empty() { &[][..] } else { &beside };
    let head = [IoSlice::new(lengths)];
    let sent = sendmsg::<()>(to.as_raw_fd(), &head, beside, MsgFlags::MSG_NOSIGNAL, None)?;
    let mut to = to;
    to.write_all(lengths.get(sent..).unwrap_or_default())?;
    to.write_all(&words)?;
    to.write_all(bytes)
}

/// A message, the bytes behind it, and the descriptor that came with it.
pub type Received<M> = (M, Vec<u8>, Option<OwnedFd>);

/// Receives a message, the bytes behind it, and the descriptor that comes with it, or `None` if the other end has closed.
///
/// # Errors
/// Nothing comes in time, or something that is not a message.
pub fn receive<M: DeserializeOwned>(from: &UnixStream) -> io::Result<Option<Received<M>>> {
    let mut lengths = [0u8; 16];
    let mut room = cmsg_space!([RawFd; 1]);
    let (got, file) = {
        let mut into = [IoSliceMut::new(&mut lengths)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(from.as_raw_fd(), &mut into, Some(&mut room), flags)?;
        let file = message.cmsgs()?.find_map(|beside| match beside {
            ControlMessageOwned::ScmRights(files) => files.first().copied(),
            _ => None,
        });
        // SAFETY: the number has just come with the message, and nothing else owns it.
        let file = file.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
        (message.bytes, file)
    };
    if got == 0 {
        return Ok(None);
    }
    let mut from = from;
    from.read_exact(&mut lengths[got..])?;
    let (words, bytes) = lengths.split_at(8);
    let length = |bytes: &[u8], most: u64| {
        let length = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        match length <= most {
            true => Ok(length as usize),
            false => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    };
    let mut text = vec![0; length(words, MOST_WORDS)?];
    let mut behind = vec![0; length(bytes, MOST_BYTES)?];
    from.read_exact(&mut text)?;
    from.read_exact(&mut behind)?;
    Ok(Some((serde_json::from_slice(&text)?, behind, file)))
}
