//! What the helper has staged of this rank, on its way into the image.
//!
//! It is opened when memory is staged, and taken by whoever writes the image, before the application may run on. What nobody has taken by the time the
//! devices work again is given up: its connection ends, and the helper gives the memory back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stillpoint_faults::{Point, strike};
use stillpoint_gpu_messages::Memory;
use stillpoint_image::devices::Uuid;
use stillpoint_image::{ImageError, Writer};

use super::client::{Client, Trouble};
use crate::capture::increment::Increment;

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

impl Staged {
    /// Writes what has changed of it. Between two pieces it is asked whether the checkpoint has been given up.
    ///
    /// # Errors
    /// The helper's, or the image's.
    pub fn write(
        mut self,
        writer: &mut Writer,
        increment: &mut Increment,
        given_up: &dyn Fn() -> bool,
    ) -> Result<(), NotWritten> {
        let told = NotWritten::NotCome;
        strike(Point::GpuDrain).map_err(|error| told(error.to_string()))?;
        let mut devices = Vec::new();
        for (place, memory) in self.memories.iter().enumerate() {
            let uuid = Uuid(memory.uuid.0);
            let number = writer.device(uuid, memory.bytes)?;
            devices.push(increment.device((uuid, place), number));
        }
        let mut out = vec![0; devices.len()];
        let mut room = Vec::new();
        loop {
            if given_up() {
                return Err(told("the checkpoint has been given up".to_owned()));
            }
            let next = self.client.next(&mut room);
            let Some((memory, offset)) = next.map_err(|trouble| told(trouble.to_string()))? else {
                break;
            };
            let place = devices.get_mut(memory).zip(out.get_mut(memory));
            let Some((device, out)) = place.filter(|(_, out)| **out == offset) else {
                return Err(told(format!("bytes of memory {memory} come out of order")));
            };
            *out += room.len() as u64;
            device.next(writer, &room)?;
        }
        let whole = self.memories.iter().zip(&out);
        match whole
            .into_iter()
            .find(|(memory, out)| memory.bytes != **out)
        {
            None => {
                for (place, (memory, device)) in self.memories.iter().zip(devices).enumerate() {
                    let name = (Uuid(memory.uuid.0), place);
                    increment.device_has_come(name, device, writer)?;
                }
                Ok(())
            }
            Some((memory, out)) => Err(told(format!(
                "{out} of {} bytes of {} came",
                memory.bytes, memory.uuid
            ))),
        }
    }
}
