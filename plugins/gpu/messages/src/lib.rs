//! Messages between a rank and the GPU helper of its node: one line of JSON for each request, and one for its answer.
//!
//! The helper (`plugins/gpu/helper`) makes the driver's calls for a rank, because the driver wants them from another process. A request never
//! names its process: the kernel tells which one is at the other end of the socket.

#![forbid(unsafe_code)]

mod facts;
pub mod hashed;
mod staged;

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use stillpoint_ids::{Epoch, Rank};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use facts::{Device, Facts, Uuid};
pub use hashed::{Hashed, Hashers};
pub use staged::{Memory, Report, WayReport};

/// The version, which counts up with every change of these messages. Ranks and helper of one installation have the
/// same.
pub const VERSION: u32 = 6;

/// The length limit of a line. The facts about a node are the longest message.
pub const MOST: u64 = 1 << 20;

/// A request of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The first request.
    Hello {
        version: u32,
    },
    Facts,
    /// Asks for the driver's state of the rank's process. Its restore thread answers the driver, so it must run.
    State,
    /// Asks for the thread that carries out checkpoints and restores. The driver answers also while all threads of the process stand still.
    RestoreThread,
    /// Makes new work wait, and waits at most so long for submitted work.
    Lock {
        milliseconds: u32,
    },
    /// Moves device memory into the rank's own memory, and lets go of the devices.
    Checkpoint,
    /// Moves the memory back to the devices, or to others if the pairs say so.
    Restore {
        pairs: Vec<(Uuid, Uuid)>,
    },
    Unlock,
    /// Measures the node's GPUs and their links, unless `directory`, the job's checkpoint directory, has a record of them. The answer comes when that is
    /// done.
    Survey {
        directory: PathBuf,
    },
    /// Copies device memory to any place with room, together with that of all locked ranks, and lets go of the devices. The connection holds the
    /// staged memory until it has asked for [`Request::Unstage`], or ends.
    Stage {
        rank: Rank,
        epoch: Epoch,
        directory: PathBuf,
    },
    /// Moves the staged memory of this process back to the devices.
    Unstage,
    /// Announces that the connection will ask for the staged memory of this process. The connection holds it until it
    /// ends.
    Drain,
    /// Asks for hashes of blocks of so many bytes, by these hashers. Only blocks within one place have hashes. Comes before the first bytes.
    Hashes {
        block: u64,
        hashers: Hashers,
    },
    /// Limits the drain to wanted blocks of so many bytes. A bit for each block of each memory follows; each memory's bits begin with a new byte. Comes
    /// before the first bytes.
    Only {
        block: u64,
    },
    /// Asks for the host memory that holds this connection's bytes: those being drained or, without a drain, those to be filled.
    Arena,
    /// Asks for the next bytes. They stay until the next request.
    Next,
    /// Moves the bytes of these memories, one behind the other, to the devices, or to others if the pairs say so. Each answer says where to put bytes, and
    /// one byte sent back says that they are there.
    Fill {
        rank: Rank,
        directory: PathBuf,
        pairs: Vec<(Uuid, Uuid)>,
        memories: Vec<Memory>,
    },
}

/// An answer of the helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Facts(Facts),
    State(State),
    /// The thread; `None`: the process has not initialized the driver.
    Thread(Option<u32>),
    /// The request timed out. Nothing has changed.
    TimedOut,
    /// Device memory is staged.
    Staged(Report),
    /// Memory cannot be staged; the text is for people. Nothing has changed: the devices are locked, and can be checkpointed in the
    /// other way.
    NotStaged(String),
    /// The staged memory of the process.
    Memories(Vec<Memory>),
    /// The hashes of the process's blocks.
    Hashes(Hashed),
    /// The memory is a file of so many bytes. The rank sends one byte when it is ready, and the file descriptor comes
    /// with one byte.
    Arena {
        bytes: u64,
    },
    /// So many bytes of the memory with that number in the list, from an offset on, lie at offset `at` of the arena, or are to be put there.
    Bytes {
        memory: usize,
        offset: u64,
        bytes: u64,
        at: u64,
    },
    /// A failure; the text is for people.
    Failed(String),
}

/// The driver's state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The process does not use the driver, or the driver does not know it.
    Unknown,
    Running,
    Locked,
    Checkpointed,
    Failed,
    /// Between two of these.
    Moving,
}

/// Returns the name of the socket of a job's helper on this node, in the abstract namespace. Each launch and each user
/// has its own.
pub fn socket(launch: &str, user: u32) -> Vec<u8> {
    format!("stillpoint-gpu-{user}-{launch}").into_bytes()
}

/// Writes one message.
///
/// # Errors
/// The other end is gone.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads one message; returns `None` if the other end has closed.
///
/// # Errors
/// No message comes in time, or it is not valid.
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
