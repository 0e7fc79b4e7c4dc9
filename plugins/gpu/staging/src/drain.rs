//! Draining: staged memory is written out in order, through slots of host memory, while the program runs.

use std::collections::BTreeMap;

use stillpoint_gpu_plan::{Copies, StagingPlace};
use stillpoint_ids::Rank;

use crate::Error;
use crate::device::{Copy, Device, Digest, Spot, digest};
use crate::places;
use crate::pump::Pump;
use crate::stage::{Piece, Staged, agree};

/// The destination of drained bytes: the rank's image.
pub trait Sink {
    /// Writes the next bytes of a source, by its number in the list of sources, from an offset on. Sources come in their order, and so do the bytes
    /// of each: all of them, or those that are [wanted](Staged::only). The bytes stay in place until the next step of the drain. A digest comes with
    /// them if a device has computed one, or if this sink wants it.
    fn write(
        &mut self,
        source: usize,
        offset: u64,
        bytes: &[u8],
        digest: Option<Digest>,
    ) -> Result<(), SinkError>;

    /// Tells whether it wants a digest of bytes that no device has hashed.
    fn wants_digests(&self) -> bool {
        true
    }
}

/// The reason why a sink takes no more.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank}: {problem}")]
pub struct SinkError {
    pub rank: Rank,
    pub problem: String,
}

/// A drain under way. Each step writes out one piece; the owner can do other work between steps.
#[derive(Debug)]
pub struct Drain {
    staged: Staged,
    pump: Pump,
    /// The next piece to write out.
    next: usize,
    /// The next piece that is neither in host memory nor on its way there.
    ahead: usize,
    free: Vec<Spot>,
    /// Pieces on their way to slots, and those that are there.
    under_way: BTreeMap<usize, Spot>,
    arrived: BTreeMap<usize, Spot>,
    /// The slot of the last written piece, which the receiver may still be reading.
    last: Option<Spot>,
}

impl Drain {
    /// Prepares to drain from the first byte of the first source, with as many streams from each GPU as there are
    /// slots.
    pub fn new(staged: Staged) -> Drain {
        let streams = staged.drain.streams;
        Drain::in_streams(staged, &|_, _| streams)
    }

    /// Does the same; `streams` chooses the number of streams for so many bytes from a GPU, up to the number of slots.
    pub fn in_streams(staged: Staged, streams: &dyn Fn(usize, u64) -> u32) -> Drain {
        let mut loads: BTreeMap<usize, u64> = BTreeMap::new();
        for piece in &staged.pieces {
            if let StagingPlace::Gpu(gpu) = piece.spot.place {
                *loads.entry(gpu).or_default() += piece.bytes;
            }
        }
        let mut pump = Pump::default();
        for (gpu, bytes) in loads {
            let streams = streams(gpu, bytes).clamp(1, staged.drain.streams.max(1));
            let copies = Copies {
                streams,
                ..staged.drain
            };
            pump.line((StagingPlace::Gpu(gpu), StagingPlace::Host), copies);
        }
        let slot = staged.drain.slot.max(1);
        let count = staged.drain.slots() / slot;
        let free = (0..count).map(|at| staged.slots.after(at * slot)).collect();
        Drain {
            staged,
            pump,
            next: 0,
            ahead: 0,
            free,
            under_way: BTreeMap::new(),
            arrived: BTreeMap::new(),
            last: None,
        }
    }

    /// Returns the memory that is drained.
    pub fn staged(&self) -> &Staged {
        &self.staged
    }

    /// Tells whether a place holds bytes that are not written out yet.
    pub fn is_on(&self, place: StagingPlace) -> bool {
        let left = &self.staged.pieces[self.next..];
        left.iter().any(|piece| piece.spot.place == place)
    }

    /// Writes out the next piece, and returns false if there is none.
    pub fn step(&mut self, device: &mut dyn Device, sink: &mut dyn Sink) -> Result<bool, Error> {
        self.free.extend(self.last.take());
        let Some(&piece) = self.staged.pieces.get(self.next) else {
            return Ok(false);
        };
        self.fetch(device)?;
        let spot = match piece.spot.place {
            StagingPlace::Host => piece.spot,
            StagingPlace::Gpu(_) => self.wait_for(device, self.next)?,
        };
        let bytes = device.host(spot, piece.bytes)?;
        let hashed = piece.digest.is_some() || sink.wants_digests();
        let found = hashed.then(|| digest(bytes));
        if !agree(piece.digest, found) {
            return Err(self.staged.changed(&piece));
        }
        sink.write(piece.source, piece.offset, bytes, found)?;
        self.staged.pieces[self.next].digest = found;
        if self.arrived.remove(&self.next).is_some() {
            self.last = Some(spot);
        }
        self.next += 1;
        if !self.is_on(piece.spot.place) {
            self.give_back_emptied(device, piece.spot.place);
        }
        Ok(true)
    }

    /// Gives a GPU's memory back to the program as soon as it holds no staged bytes.
    fn give_back_emptied(&mut self, device: &mut dyn Device, place: StagingPlace) {
        if place == StagingPlace::Host {
            return;
        }
        self.staged.reserved.retain(|(of, spot, _)| {
            let emptied = *of == place;
            if emptied {
                device.give_back(*spot);
            }
            !emptied
        });
    }

    /// Writes out the rest.
    pub fn run(&mut self, device: &mut dyn Device, sink: &mut dyn Sink) -> Result<(), Error> {
        while self.step(device, sink)? {}
        Ok(())
    }

    /// Gives all memory back, whether everything is written out or not.
    pub fn end(self, device: &mut dyn Device) {
        device.settle();
        places::give_back(device, &self.staged.reserved);
    }

    /// Fetches pieces in their order, as long as there are free slots.
    fn fetch(&mut self, device: &mut dyn Device) -> Result<(), Error> {
        while let Some(piece) = self.staged.pieces.get(self.ahead) {
            if piece.spot.place != StagingPlace::Host {
                let Some(slot) = self.free.pop() else { break };
                let Piece { spot, bytes, .. } = *piece;
                let copy = Copy {
                    from: spot,
                    to: slot,
                    bytes,
                };
                self.pump.add(self.ahead, copy);
                self.under_way.insert(self.ahead, slot);
            }
            self.ahead += 1;
        }
        Ok(self.pump.begin(device)?)
    }

    fn wait_for(&mut self, device: &mut dyn Device, number: usize) -> Result<Spot, Error> {
        loop {
            if let Some(&slot) = self.arrived.get(&number) {
                return Ok(slot);
            }
            let ended = self.pump.next(device)?;
            let slot = ended.and_then(|ended| Some((ended, self.under_way.remove(&ended)?)));
            let (ended, slot) = slot.ok_or_else(|| {
                // Slots are assigned in the order of pieces, so the next one has always been fetched.
                let problem = format!("piece {number} was never sent for");
                Error::Device(crate::DeviceError::Other(problem))
            })?;
            self.arrived.insert(ended, slot);
        }
    }
}
