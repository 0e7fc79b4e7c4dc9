//! Draining: what is staged goes out in order, through slots of host memory, while the program runs.

use std::collections::BTreeMap;

use stillpoint_gpu_plan::{Copies, Place};

use crate::Error;
use crate::device::{Copy, Device, Digest, Spot, digest};
use crate::places;
use crate::pump::Pump;
use crate::stage::{Piece, Staged, agree};

/// Where drained bytes go: the rank's image.
pub trait Sink {
    /// The next bytes of a source, which is known by its number in the list of sources, from an offset on. Sources come in their order, and so
    /// do the bytes of each: all of them, or those that are [wanted](Staged::only). They stay where they are until the next step of the drain. Their
    /// digest is there where a device has made one, or this wants it.
    fn write(
        &mut self,
        source: usize,
        offset: u64,
        bytes: &[u8],
        digest: Option<Digest>,
    ) -> Result<(), SinkError>;

    /// Whether it wants a digest of bytes that no device has hashed.
    fn wants_digests(&self) -> bool {
        true
    }
}

/// Why a sink takes no more.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank}: {problem}")]
pub struct SinkError {
    pub rank: u32,
    pub problem: String,
}

/// A drain under way. Each step takes one piece out; between two of them its owner does what else there is to do.
#[derive(Debug)]
pub struct Drain {
    staged: Staged,
    pump: Pump,
    /// The piece that goes out next.
    next: usize,
    /// The next piece that is not in host memory and not on its way there.
    ahead: usize,
    free: Vec<Spot>,
    /// Pieces on their way to slots, and those that are there.
    under_way: BTreeMap<usize, Spot>,
    arrived: BTreeMap<usize, Spot>,
    /// The slot of what went out last: whoever got it may look at it still.
    last: Option<Spot>,
}

impl Drain {
    /// Begins with the first byte of the first source, in as many streams from each GPU as slots were taken for.
    pub fn new(staged: Staged) -> Drain {
        let streams = staged.drain.streams;
        Drain::in_streams(staged, &|_, _| streams)
    }

    /// The same, and it is asked in how many streams so many bytes come from a GPU; in no more than slots were taken for.
    pub fn in_streams(staged: Staged, streams: &dyn Fn(usize, u64) -> u32) -> Drain {
        let mut loads: BTreeMap<usize, u64> = BTreeMap::new();
        for piece in &staged.pieces {
            if let Place::Gpu(gpu) = piece.spot.place {
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
            pump.line((Place::Gpu(gpu), Place::Host), copies);
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

    /// What is drained.
    pub fn staged(&self) -> &Staged {
        &self.staged
    }

    /// Whether anything that is not out yet lies in a place.
    pub fn is_on(&self, place: Place) -> bool {
        let left = &self.staged.pieces[self.next..];
        left.iter().any(|piece| piece.spot.place == place)
    }

    /// Takes the next piece out; false when all are out.
    pub fn step(&mut self, device: &mut dyn Device, sink: &mut dyn Sink) -> Result<bool, Error> {
        self.free.extend(self.last.take());
        let Some(&piece) = self.staged.pieces.get(self.next) else {
            return Ok(false);
        };
        self.fetch(device)?;
        let spot = match piece.spot.place {
            Place::Host => piece.spot,
            Place::Gpu(_) => self.wait_for(device, self.next)?,
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

    /// A GPU's memory is the program's again as soon as nothing lies there any more.
    fn give_back_emptied(&mut self, device: &mut dyn Device, place: Place) {
        if place == Place::Host {
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

    /// Takes everything out that is left.
    pub fn run(&mut self, device: &mut dyn Device, sink: &mut dyn Sink) -> Result<(), Error> {
        while self.step(device, sink)? {}
        Ok(())
    }

    /// Gives all memory back, whether everything is out or not.
    pub fn end(self, device: &mut dyn Device) {
        device.settle();
        places::give_back(device, &self.staged.reserved);
    }

    /// Sends for pieces in their order, as far as there are slots.
    fn fetch(&mut self, device: &mut dyn Device) -> Result<(), Error> {
        while let Some(piece) = self.staged.pieces.get(self.ahead) {
            if piece.spot.place != Place::Host {
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
                // Slots are given out in the order of pieces, so the next one has always been sent for.
                let problem = format!("piece {number} was never sent for");
                Error::Device(crate::DeviceError::Other(problem))
            })?;
            self.arrived.insert(ended, slot);
        }
    }
}
