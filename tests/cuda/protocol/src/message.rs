//! Messages between a client and the device, and their frames.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::description::Node;
use crate::fault::Fault;
use crate::page::Lent;

/// A request of a client. Slow work is submitted to a stream, and everything else is answered at once.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Asks for the node's description.
    Node,
    /// Allocates memory of a device, at an address that the client has chosen.
    Allocate {
        device: u32,
        address: u64,
        size: u64,
    },
    /// Allocates memory that the host reaches as well, at the same address: it is a file of the folder.
    Manage {
        device: u32,
        address: u64,
        size: u64,
    },
    /// Frees memory whose stream has come so far.
    Free { address: u64 },
    /// Makes a context of a device, which takes some of the device's memory.
    Context { device: u32 },
    /// Ends a context.
    EndContext { device: u32 },
    /// Asks how much of a device's memory is free.
    Memory { device: u32 },
    /// Asks whether a fault strikes now. If it strikes only a number of times, this uses one up.
    Fault { fault: Fault },
    /// Submits work to a stream.
    Submit {
        device: u32,
        stream: u32,
        sequence: u32,
        /// Pieces of work of other streams that must be done first: stream and number.
        after: Vec<(u32, u32)>,
        work: Work,
    },
    /// Ends the use of a stream, once it has done its submitted work.
    Close { stream: u32 },
    /// Lends a device's memory to another process: all of this client's pieces in order of their addresses.
    Lend { device: u32 },
    /// Makes memory that another process has lent appear at an address of this one.
    Borrow { lent: Lent, address: u64 },
    /// Removes borrowed memory.
    Return { address: u64 },
    /// Gives a piece of memory a name by which other clients open it.
    Share { address: u64 },
    /// Makes the memory of that name appear at an address of this client, until the client frees it.
    Open { token: u64, address: u64 },
    /// Announces the end of the connection. The answer means that the client's resources have been freed.
    Leave,
}

impl Request {
    /// Tells whether the request is answered. Work is not, and its client does not wait: errors appear in the channel.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Request::Submit { .. } | Request::Close { .. })
    }
}

/// A piece of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Copies from the client's host memory to device memory.
    ToDevice { host: u64, address: u64, size: u64 },
    /// Copies from device memory to the client's host memory.
    ToHost { address: u64, host: u64, size: u64 },
    /// Copies from device memory to device memory, of the same device or another.
    Within { from: u64, to: u64, size: u64 },
    /// Writes the pattern `count` times.
    Fill {
        address: u64,
        pattern: Vec<u8>,
        count: u64,
    },
    /// Runs a kernel.
    Launch(Launch),
    /// Keeps the time for an event.
    Stamp { event: u32 },
    /// Calls a function of the host.
    Host { ticket: u32 },
    /// Frees memory.
    Free { address: u64 },
    /// Does nothing, but has a place in the order.
    Nothing,
}

/// A kernel with all its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// The parameters, one behind the other.
    pub parameters: Vec<Vec<u8>>,
}

/// An answer of the device.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    Done,
    Node(Box<Node>),
    Memory {
        free: u64,
        total: u64,
    },
    Lent(Lent),
    /// The name of the file behind managed memory.
    Managed(String),
    /// Whether there was such a fault.
    Fault(bool),
    /// The driver's result.
    Failed(u32),
}

/// The most bytes of a valid message.
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
