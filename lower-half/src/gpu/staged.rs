//! Device memory that the helper has staged for this rank, on its way into the image.
//!
//! It is opened when memory is staged. The writer of the image takes it before the application may run on. If it has not been taken by the time the devices
//! work again, it is given up: its connection ends, and the helper frees the memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stillpoint_faults::{Point, strike};
use stillpoint_gpu_messages::Memory;
use stillpoint_image::ImageError;
use stillpoint_image::devices::Uuid;

use super::client::{Client, Next, Trouble, outside};
use super::hashes::{HashReply, HashRequest};
use super::remaining_ranges::RemainingRanges;

/// Staged memory, at the other end of a connection of its own.
pub struct Staged {
    client: Client,
    memories: Vec<Memory>,
}

/// Why staged memory cannot be written to the image.
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("what its GPUs held cannot be written down: {0}; the job runs on")]
    NotCome(String),
}

static STAGED: Mutex<Option<Staged>> = Mutex::new(None);

fn staged() -> MutexGuard<'static, Option<Staged>> {
    STAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens what has just been staged.
///
/// # Errors
/// The helper's.
pub fn open() -> Result<(), Trouble> {
    let mut client = Client::connect()?;
    let memories = client.drain()?;
    *staged() = Some(Staged { client, memories });
    Ok(())
}

/// Returns the number of staged bytes.
pub fn bytes() -> u64 {
    let staged = staged();
    let memories = staged.iter().flat_map(|staged| &staged.memories);
    memories.map(|memory| memory.bytes).sum()
}

/// Takes the staged memory in order to write it to the image.
pub fn take() -> Option<Staged> {
    staged().take()
}

/// Gives up staged memory that has not been taken.
pub fn give_up() {
    drop(take());
}

/// Receives a rank's memories of devices, one after the other, each from its first byte on.
///
/// A taker that asks for hashes receives them first, and then says which bytes of each memory it wants.
pub trait Taker {
    /// Announces the next memory and its size.
    fn begins(&mut self, uuid: Uuid, bytes: u64) -> Result<(), ImageError>;
    /// Returns how the memories are to be hashed where they lie; `None`: no hashes, and all bytes come.
    fn asks(&self) -> Option<HashRequest>;
    /// Receives the hashes.
    fn told(&mut self, told: HashReply);
    /// Returns which bytes of the memory in this place, of this size, are to come.
    fn wants(&self, place: usize, bytes: u64) -> RemainingRanges;
    /// Receives the next bytes of the memory in this place, starting at `offset`.
    fn next(&mut self, place: usize, offset: u64, bytes: &[u8]) -> Result<(), ImageError>;
    fn all_have_come(&mut self) -> Result<(), ImageError>;
}

impl Staged {
    /// Gives all of it to the writer. Between two pieces it checks whether the checkpoint has been given up.
    ///
    /// # Errors
    /// The helper's, or the image's.
    pub fn write(
        mut self,
        to: &mut dyn Taker,
        given_up: &dyn Fn() -> bool,
    ) -> Result<(), NotWritten> {
        let told = NotWritten::NotCome;
        strike(Point::GpuDrain).map_err(|error| told(error.to_string()))?;
        for memory in &self.memories {
            to.begins(Uuid(memory.uuid.0), memory.bytes)?;
        }
        let heard = |trouble: Trouble| told(trouble.to_string());
        let asked = to.asks();
        if let Some(asked) = asked {
            let hashes = self.client.hashes(asked, &self.memories);
            to.told(hashes.map_err(heard)?);
        }
        let memories = self.memories.iter().enumerate();
        let mut wanted: Vec<RemainingRanges> = memories
            .map(|(place, memory)| match asked {
                Some(_) => to.wants(place, memory.bytes),
                None => RemainingRanges::all(memory.bytes),
            })
            .collect();
        if let Some(HashRequest { block, .. }) = asked {
            let only = self.client.only(block, &self.memories, &wanted);
            only.map_err(heard)?;
        }
        let arena = self.client.arena(false).map_err(heard)?;
        loop {
            if given_up() {
                return Err(told("the checkpoint has been given up".to_owned()));
            }
            let Some(next) = self.client.next().map_err(heard)? else {
                break;
            };
            let Next {
                memory,
                offset,
                bytes,
                at,
            } = next;
            let comes = (wanted.get_mut(memory)).is_some_and(|one| one.has_come(offset, bytes));
            if !comes {
                return Err(told(format!("bytes of memory {memory} come out of order")));
            }
            let lying = arena.bytes(at, bytes).ok_or_else(outside).map_err(heard)?;
            to.next(memory, offset, lying)?;
        }
        let whole = self.memories.iter().zip(&wanted);
        match whole.into_iter().find(|(_, wanted)| wanted.left() > 0) {
            None => Ok(to.all_have_come()?),
            Some((memory, wanted)) => Err(told(format!(
                "{} of {} bytes of {} did not come",
                wanted.left(),
                memory.bytes,
                memory.uuid
            ))),
        }
    }
}
