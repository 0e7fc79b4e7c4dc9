//! Devices come back in a restart.

use std::sync::atomic::Ordering;

use stillpoint_faults::Point;
use stillpoint_gpu_messages::{Memory, Uuid};
use stillpoint_refusals::{Refusal, refusal};

use super::client::{Client, Trouble};
use super::held::{HAD, at};
use crate::gate::stop;
use crate::threads::registry::Thread;

/// Where device memory comes from in a restart.
pub enum From<'a> {
    /// The process's own memory.
    Own,
    /// The image: its memories, and the function that reads the next bytes of one of them.
    Image(&'a [Memory], &'a mut Read<'a>),
}

/// Reads the next bytes of the memory with that number.
pub type Read<'a> = dyn FnMut(usize, &mut [u8]) -> Result<(), String> + 'a;

/// Brings device memory back in a restart, to other devices if `pairs` say so. Only `thread` runs meanwhile; it is stopped again at the end.
///
/// # Errors
/// Why it does not come back.
pub fn bring_back(thread: Thread, pairs: &[(Uuid, Uuid)], from: From<'_>) -> Result<(), Refusal> {
    HAD.store(true, Ordering::Release);
    let told = |trouble: Trouble| {
        refusal!(
            NotRestored,
            "its GPUs cannot be had again: {trouble}; nothing of it has run, and its epoch is as it was: restart it again, here once nvidia-smi shows its GPUs well, or on another node"
        )
    };
    let mut client = Client::connect().map_err(told)?;
    at(Point::RestartGpu)?;
    match from {
        From::Own => client.restore(pairs),
        From::Image(memories, read) => {
            at(Point::RestartGpuFill)?;
            client.fill(pairs, memories, read)
        }
    }
    .map_err(told)?;
    at(Point::RestartGpuUnlock)?;
    client.unlock().map_err(told)?;
    match stop::halt(thread) {
        true => Ok(()),
        false => Err(refusal!(
            NotRestored,
            "its GPUs' driver's thread does not stand still again"
        )),
    }
}
