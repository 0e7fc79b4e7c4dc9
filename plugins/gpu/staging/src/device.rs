//! The interface to devices: memory on GPUs and in the host, streams, and waits for them.

use std::time::Duration;

use stillpoint_gpu_plan::StagingPlace;

/// xxh3 of 128 bits.
pub type Digest = u128;

/// Returns the digest of bytes in host memory.
pub fn digest(bytes: &[u8]) -> Digest {
    xxhash_rust::xxh3::xxh3_128(bytes)
}

/// An address in a place's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    pub place: StagingPlace,
    pub address: u64,
}

impl Spot {
    /// Returns the spot so many bytes further on.
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
    pub from: StagingPlace,
    pub to: StagingPlace,
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

/// An error of a device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("{place:?} has no room for {bytes} bytes")]
    OutOfMemory { place: StagingPlace, bytes: u64 },
    #[error("a copy of {bytes} bytes from {from:?} to {to:?} failed: {problem}")]
    Copy {
        from: StagingPlace,
        to: StagingPlace,
        bytes: u64,
        problem: String,
    },
    #[error("GPU {gpu} is lost: {problem}")]
    Lost { gpu: usize, problem: String },
    #[error("{0}")]
    Other(String),
}

/// Device and host memory of a node, and the copies between them.
///
/// No code reads memory that a copy under way reads or writes.
pub trait Device {
    /// Returns the free bytes of a place.
    fn room(&mut self, place: StagingPlace) -> Result<u64, DeviceError>;

    /// Takes memory of a place; fails with [`DeviceError::OutOfMemory`] if there is not that much in one piece.
    fn reserve(&mut self, place: StagingPlace, bytes: u64) -> Result<Spot, DeviceError>;

    /// Gives reserved memory back. A failure has no effect.
    fn give_back(&mut self, spot: Spot);

    /// Begins a copy. A stream is created when it is first named.
    fn begin(&mut self, stream: Stream, copy: &Copy) -> Result<Ticket, DeviceError>;

    /// Waits until any of the begun copies has ended, and returns it. Each is returned once.
    fn ended(&mut self) -> Result<Ticket, DeviceError>;

    /// Waits until no copy is under way, whether they succeed or not. `ended` does not return these copies.
    fn settle(&mut self);

    /// Returns bytes of reserved host memory.
    fn host(&self, spot: Spot, bytes: u64) -> Result<&[u8], DeviceError>;

    /// Returns the same bytes, to write to.
    fn host_mut(&mut self, spot: Spot, bytes: u64) -> Result<&mut [u8], DeviceError>;

    /// Computes the digest of a GPU's memory in place; returns `None` if the device does not hash.
    fn digest(&mut self, spot: Spot, bytes: u64) -> Result<Option<Digest>, DeviceError>;

    /// Tells whether the device hashes its own memory.
    fn can_hash(&self) -> bool;

    /// Returns the time since some fixed moment.
    fn now(&self) -> Duration;
}
