//! What the helper has staged of this rank, on its way into the image.
//!
//! It is opened when memory is staged, and taken by whoever writes the image, before the application may run on. What nobody has taken by the time the
//! devices work again is given up: its connection ends, and the helper gives the memory back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stillpoint_faults::{Point, strike};
use stillpoint_gpu_messages::Memory;
use stillpoint_image::ImageError;
use stillpoint_image::devices::Uuid;

use super::client::{Client, Next, Trouble, outside};
use super::hashes::{Asked, Told};
use super::wanted::Wanted;

/// What is staged, at the other end of a connection of its own.
pub struct Staged {
    client: Client,
    memories: Vec<Memory>,
}

/// Why it cannot be written down.
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

/// How many bytes there are.
pub fn bytes() -> u64 {
    let staged = staged();
    let memories = staged.iter().flat_map(|staged| &staged.memories);
    memories.map(|memory| memory.bytes).sum()
}

/// Takes it, to write it down.
pub fn take() -> Option<Staged> {
    staged().take()
}

/// Nobody is going to write it down who has not taken it.
pub fn give_up() {
    drop(take());
}

/// Takes a rank's memories of devices, one behind the other, each from its first byte on.
///
/// Whoever asks for hashes is told them first, and says then what of each memory is to come.
pub trait Taker {
    /// One of so many bytes is among them: the next place.
    fn begins(&mut self, uuid: Uuid, bytes: u64) -> Result<(), ImageError>;
    /// How they are to be hashed where they lie; `None`: not at all, and all of them come.
    fn asks(&self) -> Option<Asked>;
    /// What came of that.
    fn told(&mut self, told: Told);
    /// What is to come of the memory in this place, of so many bytes.
    fn wants(&self, place: usize, bytes: u64) -> Wanted;
    /// The next bytes of the one in this place, from an offset on.
    fn next(&mut self, place: usize, offset: u64, bytes: &[u8]) -> Result<(), ImageError>;
    fn all_have_come(&mut self) -> Result<(), ImageError>;
}

impl Staged {
    /// Gives all of it to whoever writes it. Between two pieces it is asked whether the checkpoint has been given up.
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
        let mut wanted: Vec<Wanted> = memories
            .map(|(place, memory)| match asked {
                Some(_) => to.wants(place, memory.bytes),
                None => Wanted::all(memory.bytes),
            })
            .collect();
        if let Some(Asked { block, .. }) = asked {
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
