//! Messages between a client and the device, and their frames.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::description::Node;
use crate::fault::Fault;
use crate::page::Lent;

/// What a client asks. What takes time is submitted to a stream, and everything else is answered at once.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// What there is on this node.
    Node,
    /// Memory of a device, at an address that the client has chosen.
    Allocate {
        device: u32,
        address: u64,
        size: u64,
    },
    /// The same as memory that the host reaches as well, at the same address: it is a file of the folder.
    Manage {
        device: u32,
        address: u64,
        size: u64,
    },
    /// Memory given back: its stream has come so far.
    Free { address: u64 },
    /// A context of a device, with what it takes of the device's memory.
    Context { device: u32 },
    /// One of these goes.
    EndContext { device: u32 },
    /// How much of a device's memory is free.
    Memory { device: u32 },
    /// Whether there is this fault now; it is used up if it is to strike only so often.
    Fault { fault: Fault },
    /// Work for a stream.
    Submit {
        device: u32,
        stream: u32,
        sequence: u32,
        /// Pieces of work of other streams that must be done before: stream and number.
        after: Vec<(u32, u32)>,
        work: Work,
    },
    /// A stream is used no more, once it has done what it has.
    Close { stream: u32 },
    /// A device's memory is lent to another process, all of this client's pieces in order of their addresses.
    Lend { device: u32 },
    /// What another process has lent appears at an address of this one.
    Borrow { lent: Lent, address: u64 },
    /// Borrowed memory disappears again.
    Return { address: u64 },
    /// A piece of memory gets a name by which other clients open it.
    Share { address: u64 },
    /// What has that name appears at an address of this client, for as long as it does not free it.
    Open { token: u64, address: u64 },
    /// The client is about to end the connection. What it has is given back when this is answered.
    Leave,
}

impl Request {
    /// Whether it is answered. Work is not, and its client does not wait: what goes wrong is seen in the channel.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Request::Submit { .. } | Request::Close { .. })
    }
}

/// A piece of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// From the client's host memory to device memory.
    ToDevice { host: u64, address: u64, size: u64 },
    /// From device memory to the client's host memory.
    ToHost { address: u64, host: u64, size: u64 },
    /// From device memory to device memory, of the same device or another.
    Within { from: u64, to: u64, size: u64 },
    /// `count` times the pattern.
    Fill {
        address: u64,
        pattern: Vec<u8>,
        count: u64,
    },
    /// A kernel.
    Launch(Launch),
    /// The time is kept for an event.
    Stamp { event: u32 },
    /// A function of the host is called.
    Host { ticket: u32 },
    /// Memory is given back.
    Free { address: u64 },
    /// Nothing: a place in the order.
    Nothing,
}

/// A kernel with everything that it is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// The parameters, one behind the other.
    pub parameters: Vec<Vec<u8>>,
}

/// What the device answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    Done,
    Node(Box<Node>),
    Memory {
        free: u64,
        total: u64,
    },
    Lent(Lent),
    /// The name of the file that managed memory is.
    Managed(String),
    /// Whether there was such a fault.
    Fault(bool),
    /// The driver's result.
    Failed(u32),
}

/// Most bytes of a message: what is longer is nonsense.
const MOST: usize = 1 << 20;

/// Writes a message with one call.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend(body);
    to.write_all(&frame)
}

/// Reads a message.
pub fn receive<M: DeserializeOwned>(from: &mut impl Read) -> io::Result<M> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    postcard::from_bytes(&body).map_err(io::Error::other)
}
