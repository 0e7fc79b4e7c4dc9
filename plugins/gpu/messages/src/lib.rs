//! What a rank and the GPU helper of its node say to each other: one line of JSON for each request, and one for its answer.
//!
//! The helper (`plugins/gpu/helper`) makes the driver's calls for a rank, because the driver wants them from another process. Which process is
//! meant is never said: it is the one at the other end of the socket, as the kernel tells.

#![forbid(unsafe_code)]

mod facts;
pub mod hashed;
mod staged;

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use facts::{Device, Facts, Uuid};
pub use hashed::{Hashed, Hashers};
pub use staged::{Memory, Report, WayReport};

/// Counts up with every change of what is said here. Ranks and helper of one installation have the same.
pub const VERSION: u32 = 5;

/// The longest line. Facts of a node are the longest that is said.
pub const MOST: u64 = 1 << 20;

/// What a rank asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// First of all.
    Hello {
        version: u32,
    },
    Facts,
    /// What state the driver has the rank's process in.
    State,
    /// Which of its threads carries a checkpoint and a restore out.
    RestoreThread,
    /// New work has to wait, and what was submitted is waited for, for so long.
    Lock {
        milliseconds: u32,
    },
    /// Device memory comes into the rank's own memory, and the devices are let go of.
    Checkpoint,
    /// Back to the devices: to others where pairs say so.
    Restore {
        pairs: Vec<(Uuid, Uuid)>,
    },
    Unlock,
    /// What the node's GPUs and their links do is found out, where `directory`, the job's checkpoint directory, has no record of it. Nothing is answered
    /// before that is done.
    Survey {
        directory: PathBuf,
    },
    /// Device memory is copied to wherever the node has room, together with that of all ranks that are locked, and the devices are let go of. The
    /// connection holds what is staged until it has asked for [`Request::Unstage`], or ends.
    Stage {
        rank: u32,
        epoch: u64,
        directory: PathBuf,
    },
    /// What was staged of this process goes back to the devices.
    Unstage,
    /// The connection will ask for what is staged of this process. It holds it until it ends.
    Drain,
    /// The hashes of its blocks of so many bytes: of those that lie as a whole in one place, and by whom it is said here. Before the first bytes.
    Hashes {
        block: u64,
        hashers: Hashers,
    },
    /// Of what is drained only some blocks of so many bytes are wanted: a bit for each block of each memory follows, those of a memory beginning with a
    /// byte. Before the first bytes.
    Only {
        block: u64,
    },
    /// The host memory that bytes of this connection's lie in: of what is drained, or, where nothing is, of what is to be filled.
    Arena,
    /// The next bytes of it. They stay until the next request.
    Next,
    /// Back to the devices, to others where pairs say so, with the bytes of these memories, one behind the other. Where each is to be put is answered, and
    /// one byte behind that says that it is there.
    Fill {
        rank: u32,
        directory: PathBuf,
        pairs: Vec<(Uuid, Uuid)>,
        memories: Vec<Memory>,
    },
}

/// What the helper answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Facts(Facts),
    State(State),
    Thread(u32),
    /// It did not come to that within the time. Nothing has changed.
    TimedOut,
    /// Device memory is staged.
    Staged(Report),
    /// It cannot be staged, in words for people. Nothing has changed: the devices are locked, and can be put down in the other way.
    NotStaged(String),
    /// What is staged of the process.
    Memories(Vec<Memory>),
    /// The hashes of its blocks.
    Hashes(Hashed),
    /// The memory is a file of so many bytes. One byte says that it may come, and it comes beside one byte.
    Arena {
        bytes: u64,
    },
    /// So many bytes of the memory with that number in the list, from an offset on, lie `at` that place of the arena, or are to be put there.
    Bytes {
        memory: usize,
        offset: u64,
        bytes: u64,
        at: u64,
    },
    /// In words for people.
    Failed(String),
}

/// What the driver has a process in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It does not use the driver, or the driver does not know it.
    Unknown,
    Running,
    Locked,
    Checkpointed,
    Failed,
    /// Between two of these.
    Moving,
}

/// The name of the socket of a job's helper on this node, in the abstract namespace. A launch has its own, and a user.
pub fn socket(launch: &str, user: u32) -> Vec<u8> {
    format!("stillpoint-gpu-{user}-{launch}").into_bytes()
}

/// Writes one message.
///
/// # Errors
/// Where the other end is gone.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads one message; `None` where the other end has closed.
///
/// # Errors
/// Where nothing comes in time, or what comes is no message.
pub fn receive<M: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<M>> {
    let mut line = Vec::new();
    from.take(MOST).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message has no end",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in() {
        let said = [
            Request::Hello { version: VERSION },
            Request::Lock { milliseconds: 7 },
            Request::Restore {
                pairs: vec![(Uuid([1; 16]), Uuid([0xfe; 16]))],
            },
        ];
        let mut bytes = Vec::new();
        for one in &said {
            send(&mut bytes, one).unwrap();
        }
        let mut from = bytes.as_slice();
        for one in &said {
            assert_eq!(receive(&mut from).unwrap().as_ref(), Some(one));
        }
        assert_eq!(receive::<Request>(&mut from).unwrap(), None);
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for bytes in [&b"\"Facts\""[..], b"nonsense\n", b"{\"Lock\":{}}\n"] {
            assert!(receive::<Request>(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
        let endless = vec![b' '; MOST as usize + 10];
        assert!(receive::<Request>(&mut endless.as_slice()).is_err());
    }
}
