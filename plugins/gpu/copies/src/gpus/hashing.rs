//! Hashing of device memory in place, by the GPU that holds it.

use std::thread;
use std::time::{Duration, Instant};

use stillpoint_gpu_driver::Error;
use stillpoint_gpu_driver::context::Event;
use stillpoint_gpu_driver::kernel::Kernel;
use stillpoint_gpu_hash::kernel::{ALIGNMENT, HASH_BYTES, NAME, PTX, THREADS};
use stillpoint_gpu_plan::StagingPlace;
use stillpoint_gpu_staging::{Copy, Device, DeviceError, Spot, Stream};

use super::{Gpus, PAUSE, said};

/// The most blocks that are hashed at once. Their hashes take 1 MiB on a GPU, which may have little free memory.
const AT_ONCE: u64 = 1 << 16;

/// Host memory that hashing needs, to be pinned.
pub const HASHES_AT_ONCE: u64 = AT_ONCE * HASH_BYTES;

/// The stream that hashes, beside those of copies.
const NUMBER: u32 = u32::MAX;

/// Hashes of blocks, and the time that the GPU needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashed {
    pub hashes: Vec<u128>,
    pub took: Duration,
}

/// Tells whether a GPU can hash this range: it takes 16 bytes at a time.
fn fits(spot: Spot, bytes: u64) -> bool {
    spot.address.is_multiple_of(ALIGNMENT) && bytes.is_multiple_of(ALIGNMENT)
}

impl Gpus<'_> {
    /// Computes the hashes of blocks of so many bytes, by the GPU that holds them. The last block may be shorter. Returns `None` if the range is not
    /// aligned, or is in host memory.
    ///
    /// # Errors
    /// The driver's: it rejects the kernel, or the GPU has no room for the hashes.
    pub fn hashes(
        &mut self,
        spot: Spot,
        bytes: u64,
        block: u64,
    ) -> Result<Option<Hashed>, DeviceError> {
        let StagingPlace::Gpu(gpu) = spot.place else {
            return Ok(None);
        };
        if bytes == 0 {
            return Ok(Some(Hashed::default()));
        }
        if block == 0 || !fits(spot, bytes) || !fits(spot, block) {
            return Ok(None);
        }
        let room = AT_ONCE.min(bytes.div_ceil(block)) * HASH_BYTES;
        let on_gpu = self.reserve(spot.place, room)?;
        let hashed = self.reserve(StagingPlace::Host, room).and_then(|in_host| {
            let hashed = self.hash_into(gpu, (spot, bytes, block), on_gpu, in_host);
            if hashed.is_err() {
                // No write may still be under way into memory that is given back.
                self.settle();
            }
            self.give_back(in_host);
            hashed
        });
        self.give_back(on_gpu);
        hashed.map(Some)
    }

    fn hash_into(
        &mut self,
        gpu: usize,
        (spot, bytes, block): (Spot, u64, u64),
        on_gpu: Spot,
        in_host: Spot,
    ) -> Result<Hashed, DeviceError> {
        let mut all = Hashed::default();
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(AT_ONCE.saturating_mul(block));
            let blocks = now.div_ceil(block);
            let numbers = [spot.address + done, now, block, on_gpu.address];
            all.took += self
                .run_kernel(gpu, blocks as u32, numbers)
                .map_err(|error| said(gpu, &error))?;
            let stream = Stream {
                from: spot.place,
                to: StagingPlace::Host,
                number: NUMBER,
            };
            let copy = Copy {
                from: on_gpu,
                to: in_host,
                bytes: blocks * HASH_BYTES,
            };
            let ticket = self.begin(stream, &copy)?;
            self.any_ended(|ended| ended == ticket)?;
            let (found, _) = self.host(in_host, copy.bytes)?.as_chunks::<16>();
            let found = found.iter().map(|hash| u128::from_le_bytes(*hash));
            all.hashes.extend(found);
            done += now;
        }
        Ok(all)
    }

    /// Runs the kernel, and waits for it.
    fn run_kernel(
        &mut self,
        gpu: usize,
        blocks: u32,
        numbers: [u64; 4],
    ) -> Result<Duration, Error> {
        if !self.kernels.contains_key(&gpu) {
            let kernel = self.contexts[gpu].load(PTX, NAME)?;
            self.kernels.insert(gpu, kernel);
        }
        let stream = Stream {
            from: StagingPlace::Gpu(gpu),
            to: StagingPlace::Host,
            number: NUMBER,
        };
        let queue = self.queue(stream, gpu)?;
        let context = &self.contexts[gpu];
        let event = match self.spare[gpu].pop() {
            Some(event) => event,
            None => context.event()?,
        };
        let begun = Instant::now();
        let ended = self.kernels.get(&gpu).map(|kernel| {
            // SAFETY: the kernel is that of the text, which takes these four. It reads the staged bytes, which no one else writes to, and writes into room for
            // as many hashes; the caller that took this room waits here.
            let launched =
                unsafe { context.launch(kernel, (blocks, THREADS), numbers, queue, event) };
            launched.and_then(|()| wait(context, event))
        });
        match ended {
            Some(Ok(())) | None => self.spare[gpu].push(event),
            Some(Err(error)) => {
                // The kernel may be under way without its event.
                drop(context.settle());
                drop(context.end_event(event));
                return Err(error);
            }
        }
        Ok(begun.elapsed())
    }

    /// Unloads the kernels, which are no longer in use.
    pub(super) fn unload(&mut self) {
        for (gpu, kernel) in std::mem::take(&mut self.kernels) {
            // The driver unloads it with its context in any case.
            drop(self.contexts[gpu].unload(kernel));
        }
    }
}

fn wait(context: &stillpoint_gpu_driver::context::Context<'_>, event: Event) -> Result<(), Error> {
    while !context.has_come(event)? {
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Kernels by GPU.
pub(super) type Kernels = std::collections::BTreeMap<usize, Kernel>;
