//! What copies: memory on GPUs and in the host, streams, and waiting for them.

use std::time::Duration;

use stillpoint_gpu_plan::Place;

/// xxh3 of 128 bits.
pub type Digest = u128;

/// The digest of bytes in host memory.
pub fn digest(bytes: &[u8]) -> Digest {
    xxhash_rust::xxh3::xxh3_128(bytes)
}

/// An address in a place's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    pub place: Place,
    pub address: u64,
}

impl Spot {
    /// So many bytes further on.
    pub fn after(self, bytes: u64) -> Spot {
        Spot {
            place: self.place,
            address: self.address + bytes,
        }
    }
}

/// A queue of copies from one place to another: in a stream, one copy begins when the one before it has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stream {
    pub from: Place,
    pub to: Place,
    pub number: u32,
}

/// One copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    pub from: Spot,
    pub to: Spot,
    pub bytes: u64,
}

/// A copy that has been begun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// What can go wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("{place:?} has no room for {bytes} bytes")]
    OutOfMemory { place: Place, bytes: u64 },
    #[error("a copy of {bytes} bytes from {from:?} to {to:?} failed: {problem}")]
    Copy {
        from: Place,
        to: Place,
        bytes: u64,
        problem: String,
    },
    #[error("GPU {gpu} is lost: {problem}")]
    Lost { gpu: usize, problem: String },
    #[error("{0}")]
    Other(String),
}

/// Device and host memory of a node, and what copies between them.
///
/// Memory that a copy under way reads or writes is not looked at by anybody.
pub trait Device {
    /// What is free in a place.
    fn room(&mut self, place: Place) -> Result<u64, DeviceError>;

    /// Takes memory of a place; [`DeviceError::OutOfMemory`] where there is not that much in one piece.
    fn reserve(&mut self, place: Place, bytes: u64) -> Result<Spot, DeviceError>;

    /// Gives back what was reserved. Whether that succeeds changes nothing for anybody.
    fn give_back(&mut self, spot: Spot);

    /// Begins a copy. Streams come into being when they are first named.
    fn begin(&mut self, stream: Stream, copy: &Copy) -> Result<Ticket, DeviceError>;

    /// Waits until any of the copies that were begun has ended, and says which. Each is said once.
    fn ended(&mut self) -> Result<Ticket, DeviceError>;

    /// Waits until nothing is under way any more, whatever has become of it. Nothing is said of these copies afterwards.
    fn settle(&mut self);

    /// Bytes of host memory that was reserved.
    fn host(&self, spot: Spot, bytes: u64) -> Result<&[u8], DeviceError>;

    /// The same, to write to.
    fn host_mut(&mut self, spot: Spot, bytes: u64) -> Result<&mut [u8], DeviceError>;

    /// The digest of a GPU's memory where it lies; `None` where the device does not hash.
    fn digest(&mut self, spot: Spot, bytes: u64) -> Result<Option<Digest>, DeviceError>;

    /// Whether it hashes its own memory.
    fn can_hash(&self) -> bool;

    /// Since some moment.
    fn now(&self) -> Duration;
}
