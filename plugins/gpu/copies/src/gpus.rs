//! All GPUs of the node, as the staging engine uses them.

mod hashing;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_gpu_driver::context::{Context, Event, OUT_OF_MEMORY, Stream as Queue};
use stillpoint_gpu_driver::{Driver, Error};
use stillpoint_gpu_plan::StagingPlace;
use stillpoint_gpu_staging::{Copy, Device, DeviceError, Digest, Spot, Stream, Ticket};

use crate::arena::{Arena, Shown};
use crate::pinned::Pinned;
pub use hashing::{HASHES_AT_ONCE, Hashed};

/// The time between two looks at the events of copies under way: short beside any copy that is worth a stream.
const PAUSE: Duration = Duration::from_micros(20);

/// Results after which a device is lost: `CUDA_ERROR_ILLEGAL_ADDRESS`, `..._ECC_UNCORRECTABLE`, `..._NVLINK_UNCORRECTABLE`,
/// `..._DEVICE_UNAVAILABLE`, `..._LAUNCH_FAILED`, `..._CONTEXT_IS_DESTROYED`.
const LOST: [u32; 6] = [700, 214, 220, 46, 719, 709];

/// A copy whose event has not completed.
struct UnderWay {
    ticket: Ticket,
    stream: Stream,
    copy: Copy,
    event: Event,
}

/// Contexts, memory and copies of all GPUs.
pub struct Gpus<'d> {
    contexts: Vec<Context<'d>>,
    queues: BTreeMap<Stream, Queue>,
    under_way: Vec<UnderWay>,
    /// Completed events by device, for reuse.
    spare: Vec<Vec<Event>>,
    /// The loaded kernels.
    kernels: hashing::Kernels,
    pinned: Pinned,
    host_room: u64,
    /// The source of pinned memory, made with the first pin.
    arena: Option<Arena>,
    begun: u64,
    start: Instant,
}

impl<'d> Gpus<'d> {
    /// Opens the driver's first `count` GPUs, which reach each other where they may, with so much host memory to pin.
    ///
    /// # Errors
    /// The driver's.
    pub fn open(driver: &'d Driver, count: usize, host_room: u64) -> Result<Gpus<'d>, Error> {
        let contexts: Vec<Context<'d>> = (0..count)
            .map(|number| Context::of(driver, number))
            .collect::<Result<_, _>>()?;
        Ok(Gpus {
            spare: contexts.iter().map(|_| Vec::new()).collect(),
            kernels: hashing::Kernels::new(),
            contexts,
            queues: BTreeMap::new(),
            under_way: Vec::new(),
            pinned: Pinned::default(),
            host_room,
            arena: None,
            begun: 0,
            start: Instant::now(),
        })
    }

    /// Lets a GPU write to another's memory if it may, and returns whether it may.
    ///
    /// # Errors
    /// The driver's.
    pub fn reach(&self, from: usize, to: usize) -> Result<bool, Error> {
        self.contexts[from].reach(&self.contexts[to])
    }

    /// Returns the file that holds all host memory pinned here.
    ///
    /// # Errors
    /// There is no such file.
    pub fn shown(&mut self) -> Result<Shown, DeviceError> {
        Ok(self.arena()?.shown())
    }

    fn arena(&mut self) -> Result<&mut Arena, DeviceError> {
        if self.arena.is_none() {
            let arena = Arena::new(self.host_room);
            let arena = arena.map_err(|error| {
                DeviceError::Other(format!("cannot allocate host memory for staging: {error}"))
            })?;
            self.arena = Some(arena);
        }
        let arena = self.arena.as_mut();
        arena.ok_or_else(|| DeviceError::Other("there is no host memory".to_owned()))
    }

    /// Pins host memory for all GPUs.
    fn pin(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let place = StagingPlace::Host;
        let none = DeviceError::OutOfMemory { place, bytes };
        if self.contexts.is_empty() || bytes > self.room(place)? {
            return Err(none);
        }
        let memory = self.arena()?.take(bytes).ok_or(none)?;
        // SAFETY: the arena has just given this memory, and keeps it mapped as long as this value lives, which unpins it before it gives it back.
        if let Err(error) = unsafe { self.contexts[0].pin(memory, bytes) } {
            self.arena()?.give_back(memory);
            return Err(no_memory(place, 0, bytes, &error));
        }
        self.pinned.add(memory, bytes);
        Ok(memory as u64)
    }

    /// Copies may also read from host memory that other GPUs of this process have pinned.
    ///
    /// # Safety
    /// The memory stays pinned as long as this lives, and no thread writes there.
    pub unsafe fn borrow_host(&mut self, spot: Spot, bytes: u64) {
        self.pinned.borrow(spot.address as *mut u8, bytes);
    }

    /// Returns the GPU whose stream a copy is in: the source's, if the source is a GPU.
    fn owner(stream: &Stream) -> Result<usize, DeviceError> {
        match (stream.from, stream.to) {
            (StagingPlace::Gpu(gpu), _) | (StagingPlace::Host, StagingPlace::Gpu(gpu)) => Ok(gpu),
            (StagingPlace::Host, StagingPlace::Host) => Err(DeviceError::Other(
                "a GPU does not copy from host memory to host memory".to_owned(),
            )),
        }
    }

    fn queue(&mut self, stream: Stream, owner: usize) -> Result<Queue, Error> {
        if let Some(queue) = self.queues.get(&stream) {
            return Ok(*queue);
        }
        let queue = self.contexts[owner].stream()?;
        self.queues.insert(stream, queue);
        Ok(queue)
    }

    /// Tells whether a copy under way reads or writes any of these bytes.
    fn is_copied(&self, spot: Spot, bytes: u64) -> bool {
        let touches = |of: Spot, length: u64| {
            let apart = of.address + length <= spot.address || spot.address + bytes <= of.address;
            of.place == spot.place && !apart
        };
        let both = |one: &UnderWay| {
            touches(one.copy.from, one.copy.bytes) || touches(one.copy.to, one.copy.bytes)
        };
        self.under_way.iter().any(both)
    }

    /// Waits until one of these copies has ended.
    fn any_ended(&mut self, which: impl Fn(Ticket) -> bool) -> Result<Ticket, DeviceError> {
        while self.under_way.iter().any(|one| which(one.ticket)) {
            for at in 0..self.under_way.len() {
                let one = &self.under_way[at];
                if !which(one.ticket) {
                    continue;
                }
                let owner = Gpus::owner(&one.stream)?;
                match self.contexts[owner].has_come(one.event) {
                    Ok(false) => {}
                    Ok(true) => {
                        let one = self.under_way.remove(at);
                        self.spare[owner].push(one.event);
                        return Ok(one.ticket);
                    }
                    Err(error) => return Err(failed(&one.stream, &one.copy, owner, &error)),
                }
            }
            thread::sleep(PAUSE);
        }
        Err(DeviceError::Other("no copy is under way".to_owned()))
    }

    fn quiet_host(&self, spot: Spot, bytes: u64) -> Result<*mut u8, DeviceError> {
        if self.is_copied(spot, bytes) {
            let problem = format!(
                "{bytes} bytes at {:#x} are still being copied",
                spot.address
            );
            return Err(DeviceError::Other(problem));
        }
        self.pinned.find(spot.address, bytes)
    }
}

fn said(gpu: usize, error: &Error) -> DeviceError {
    let problem = error.to_string();
    match error.code() {
        Some(code) if LOST.contains(&code) => DeviceError::Lost { gpu, problem },
        _ => DeviceError::Other(format!("GPU {gpu}: {problem}")),
    }
}

fn no_memory(place: StagingPlace, gpu: usize, bytes: u64, error: &Error) -> DeviceError {
    match error.code() {
        Some(OUT_OF_MEMORY) => DeviceError::OutOfMemory { place, bytes },
        _ => said(gpu, error),
    }
}

impl Device for Gpus<'_> {
    fn room(&mut self, place: StagingPlace) -> Result<u64, DeviceError> {
        match place {
            StagingPlace::Gpu(gpu) => self.contexts[gpu]
                .free_bytes()
                .map_err(|error| said(gpu, &error)),
            StagingPlace::Host => Ok(self.host_room.saturating_sub(self.pinned.bytes())),
        }
    }

    fn reserve(&mut self, place: StagingPlace, bytes: u64) -> Result<Spot, DeviceError> {
        let address = match place {
            StagingPlace::Gpu(gpu) => {
                let allocated = self.contexts[gpu].allocate(bytes);
                allocated.map_err(|error| no_memory(place, gpu, bytes, &error))?
            }
            StagingPlace::Host => self.pin(bytes)?,
        };
        Ok(Spot { place, address })
    }

    fn give_back(&mut self, spot: Spot) {
        // An error of the driver here has no effect: the driver takes everything back when its process ends.
        match spot.place {
            StagingPlace::Gpu(gpu) => drop(self.contexts[gpu].free(spot.address)),
            StagingPlace::Host => {
                if let Some(range) = self.pinned.remove(spot.address) {
                    if self.is_copied(spot, range.bytes) {
                        self.settle();
                    }
                    if let Some(first) = self.contexts.first() {
                        // SAFETY: the memory was pinned and is not in the list any more; no copy uses it, and no slice of it is there, since slices borrow this
                        // value.
                        drop(unsafe { first.unpin(range.memory) });
                    }
                    if let Some(arena) = &mut self.arena {
                        arena.give_back(range.memory);
                    }
                }
            }
        }
    }

    fn begin(&mut self, stream: Stream, copy: &Copy) -> Result<Ticket, DeviceError> {
        let owner = Gpus::owner(&stream)?;
        for spot in [copy.from, copy.to] {
            if spot.place == StagingPlace::Host {
                self.pinned.find(spot.address, copy.bytes)?;
            }
        }
        let queue = self.queue(stream, owner);
        let queue = queue.map_err(|error| failed(&stream, copy, owner, &error))?;
        let context = &self.contexts[owner];
        let event = match self.spare[owner].pop() {
            Some(event) => event,
            None => {
                let made = context.event();
                made.map_err(|error| failed(&stream, copy, owner, &error))?
            }
        };
        let (to, from) = (copy.to.address, copy.from.address);
        // SAFETY: both ranges were looked up: what is host memory is pinned, and stays so while the copy is in the list; until then no slice of it is given
        // out.
        let begun = unsafe { context.copy(queue, to, from, copy.bytes, event) };
        if let Err(error) = begun {
            // The copy may be under way without its event.
            drop(context.settle());
            return Err(failed(&stream, copy, owner, &error));
        }
        let ticket = Ticket(self.begun);
        self.begun += 1;
        self.under_way.push(UnderWay {
            ticket,
            stream,
            copy: *copy,
            event,
        });
        Ok(ticket)
    }

    fn ended(&mut self) -> Result<Ticket, DeviceError> {
        self.any_ended(|_| true)
    }

    fn settle(&mut self) {
        for context in &self.contexts {
            // After this, even a lost device copies no more.
            drop(context.settle());
        }
        for one in std::mem::take(&mut self.under_way) {
            if let Ok(owner) = Gpus::owner(&one.stream) {
                self.spare[owner].push(one.event);
            }
        }
    }

    fn host(&self, spot: Spot, bytes: u64) -> Result<&[u8], DeviceError> {
        let memory = self.quiet_host(spot, bytes)?;
        // SAFETY: `quiet_host` has found pinned memory of that length, which no copy uses now; none can begin while the slice is borrowed, since `begin` takes
        // this mutably.
        Ok(unsafe { std::slice::from_raw_parts(memory, bytes as usize) })
    }

    fn host_mut(&mut self, spot: Spot, bytes: u64) -> Result<&mut [u8], DeviceError> {
        let memory = self.quiet_host(spot, bytes)?;
        // SAFETY: `quiet_host` has found pinned memory of that length, which no copy uses now; the mutable borrow keeps out copies and other slices.
        Ok(unsafe { std::slice::from_raw_parts_mut(memory, bytes as usize) })
    }

    fn digest(&mut self, _: Spot, _: u64) -> Result<Option<Digest>, DeviceError> {
        Ok(None)
    }

    fn can_hash(&self) -> bool {
        false
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

fn failed(stream: &Stream, copy: &Copy, owner: usize, error: &Error) -> DeviceError {
    match said(owner, error) {
        lost @ DeviceError::Lost { .. } => lost,
        _ => DeviceError::Copy {
            from: stream.from,
            to: stream.to,
            bytes: copy.bytes,
            problem: error.to_string(),
        },
    }
}

impl Drop for Gpus<'_> {
    fn drop(&mut self) {
        self.settle();
        self.unload();
        for range in self.pinned.all() {
            if let Some(first) = self.contexts.first() {
                // SAFETY: the memory was pinned, `settle` has ended all copies, and no slice of it is there, since slices borrow this value.
                drop(unsafe { first.unpin(range.memory) });
            }
        }
        for (stream, queue) in std::mem::take(&mut self.queues) {
            if let Ok(owner) = Gpus::owner(&stream) {
                drop(self.contexts[owner].end_stream(queue));
            }
        }
        for (context, events) in self.contexts.iter().zip(&self.spare) {
            for event in events {
                drop(context.end_event(*event));
            }
        }
    }
}
