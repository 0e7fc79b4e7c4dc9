//! Compares hashes to find the blocks of devices' memory that have changed since the epoch before: writes of a device are not tracked.
//!
//! The GPU or the helper hashes blocks where they lie, and unchanged ones are not copied to this process. Blocks that are not hashed there
//! are copied, and hashed here.
//!
//! * [`comparing`] - the hashes of a memory's blocks; pure
//! * [`device`] - a memory on its way into the image

mod comparing;
mod device;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use stillpoint_gpu_messages::Hashers;
use stillpoint_gpu_messages::hashed::Spent;
use stillpoint_image::devices::Uuid;
use stillpoint_image::{Base, ImageError, Origin, Writer};
use stillpoint_incremental::blocks::Hash;
use stillpoint_incremental::viability::Rates;
use stillpoint_protocol::agent::Incremental;

use super::Increment;
use crate::gpu::hashes::{HashReply, HashRequest};
use crate::gpu::remaining_ranges::RemainingRanges;
use crate::gpu::staged::Taker;
use comparing::{BLOCK, Comparing};
pub(super) use device::Device;

/// Bytes a second that a GPU hashes, until that has been measured: a tenth or less of the bandwidth of a GPU's memory.
pub const GPU_RATE: f64 = 100e9;

/// A device, and the index of its memory among the rank's: a device may have several memories.
pub type Name = (Uuid, usize);

/// The content of a memory in the image, and the hashes of its blocks.
pub type Hashes = (u32, Vec<Hash>);

/// The hashes of each memory of devices in an epoch.
pub type Known = BTreeMap<Name, Hashes>;

/// Returns the hashers of devices' memory, or `None` if all of it is to be written unhashed. How much of it has changed shows only with
/// hashes.
pub fn hashers(how: Incremental, rates: Rates, gpu_rate: f64) -> Option<Hashers> {
    let pays = |beta_hash: f64| Rates { beta_hash, ..rates }.pays(1.0);
    let always = how == Incremental::Blocks;
    let hashers = Hashers {
        gpus: always || pays(gpu_rate),
        processor: always || pays(rates.beta_hash),
    };
    (how.hashes() && (hashers.gpus || hashers.processor)).then_some(hashers)
}

/// All devices' memory of the rank on its way into the image.
pub struct Devices<'a> {
    writer: &'a mut Writer,
    increment: &'a mut Increment,
    memories: Vec<(Uuid, Device)>,
}

impl<'a> Devices<'a> {
    pub fn new(writer: &'a mut Writer, increment: &'a mut Increment) -> Devices<'a> {
        Devices {
            writer,
            increment,
            memories: Vec::new(),
        }
    }
}

impl Taker for Devices<'_> {
    fn begins(&mut self, uuid: Uuid, bytes: u64) -> Result<(), ImageError> {
        let name = (uuid, self.memories.len());
        let number = self.writer.device(uuid, bytes)?;
        let device = self.increment.device(name, number, bytes);
        self.memories.push((uuid, device));
        let of = self.increment.devices.outcome.get_or_insert_default();
        of.bytes += bytes;
        Ok(())
    }

    fn asks(&self) -> Option<HashRequest> {
        let hashers = self.increment.devices.hashers?;
        Some(HashRequest {
            block: BLOCK,
            hashers,
        })
    }

    fn told(&mut self, told: HashReply) {
        let of = self.increment.devices.outcome.get_or_insert_default();
        of.by_gpus += told.by_gpus.bytes;
        of.gpu_seconds += told.by_gpus.seconds;
        of.by_processor += told.by_processor.bytes;
        of.processor_seconds += told.by_processor.seconds;
        let processor = self
            .increment
            .devices
            .hashers
            .is_some_and(|hashers| hashers.processor);
        for ((_, device), hashes) in self.memories.iter_mut().zip(&told.hashes) {
            device.told(hashes, processor);
        }
    }

    fn wants(&self, place: usize, bytes: u64) -> RemainingRanges {
        let device = self.memories.get(place);
        match device.and_then(|(_, device)| device.comparing()) {
            Some(comparing) => RemainingRanges::of(comparing.wanted()),
            None => RemainingRanges::all(bytes),
        }
    }

    fn next(&mut self, place: usize, offset: u64, bytes: &[u8]) -> Result<(), ImageError> {
        let none = || {
            let problem = format!("bytes come of memory {place}, which did not begin");
            ImageError::io(self.writer.path(), "write a device's memory")(io::Error::other(problem))
        };
        let (_, device) = self.memories.get_mut(place).ok_or_else(none)?;
        device.next(self.writer, offset, bytes)
    }

    fn all_have_come(&mut self) -> Result<(), ImageError> {
        for (place, (uuid, mut device)) in self.memories.drain(..).enumerate() {
            if let Some((known, unchanged)) = device.end(self.writer)? {
                self.increment.devices.now.insert((uuid, place), known);
                self.increment.devices.unchanged.extend(unchanged);
            }
            let of = self.increment.devices.outcome.get_or_insert_default();
            of.came += device.came;
            of.written += device.written;
            of.by_processor += device.hashed.bytes;
            of.processor_seconds += device.hashed.seconds;
        }
        Ok(())
    }
}

/// Makes a memory of so many bytes, as content `number`. It is compared with its hashes in the base, except for bytes that lie in the
/// images of `left`.
pub(super) fn compared(
    (number, bytes): (u32, u64),
    before: Option<(Hashes, &Base)>,
    left: &[Origin],
) -> Device {
    let lies = |((was, _), base): &(Hashes, &Base)| base.lying_in(*was, left);
    let left: Vec<Range<u64>> = before.as_ref().map(lies).unwrap_or_default();
    let was = before.as_ref().map(|((was, _), _)| *was);
    let hashes = before.map(|((_, hashes), _)| hashes).unwrap_or_default();
    Device::new(number, Some(Comparing::new(bytes, hashes, &left)), was)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the hashers for writing at 2 GB/s.
    fn hashers_at(how: Incremental, beta_hash: f64, gpu_rate: f64) -> Option<(bool, bool)> {
        let rates = Rates::new(2e9, beta_hash).expect("rates");
        let found = hashers(how, rates, gpu_rate);
        found.map(|hashers| (hashers.gpus, hashers.processor))
    }

    #[test]
    fn whoever_hashes_faster_than_is_written_hashes() {
        let auto = |beta_hash, gpu_rate| hashers_at(Incremental::Auto, beta_hash, gpu_rate);
        assert_eq!(auto(5e9, 100e9), Some((true, true)));
        assert_eq!(auto(1e9, 100e9), Some((true, false)));
        assert_eq!(auto(5e9, 1e9), Some((false, true)));
        assert_eq!(auto(1e9, 1e9), None);
        // With this setting, it does not matter whether hashing pays.
        assert_eq!(
            hashers_at(Incremental::Blocks, 1e9, 1e9),
            Some((true, true))
        );
        for never in [Incremental::Pages, Incremental::Off] {
            assert_eq!(hashers_at(never, 5e9, 100e9), None);
        }
    }
}
