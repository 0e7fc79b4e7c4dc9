//! Draining: what is staged goes out in order, through slots of host memory, while the program runs.

use std::collections::BTreeMap;

use stillpoint_gpu_plan::Place;

use crate::Error;
use crate::device::{Copy, Device, Digest, Spot, digest};
use crate::places;
use crate::pump::Pump;
use crate::stage::{Piece, Staged, agree};

/// Where drained bytes go: the rank's image.
pub trait Sink {
    /// The next bytes of a source, which is known by its number in the list of sources. Sources come in their order, and so do the
    /// bytes of each.
    fn write(&mut self, source: usize, bytes: &[u8], digest: Digest) -> Result<(), SinkError>;
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
}

impl Drain {
    /// Begins with the first byte of the first source.
    pub fn new(staged: Staged) -> Drain {
        let mut pump = Pump::default();
        for piece in &staged.pieces {
            if piece.spot.place != Place::Host {
                pump.line((piece.spot.place, Place::Host), staged.drain);
            }
        }
        let (slot, count) = (
            staged.drain.slot.max(1),
            2 * u64::from(staged.drain.streams.max(1)),
        );
        let free = (0..count).map(|at| staged.slots.after(at * slot)).collect();
        Drain {
            staged,
            pump,
            next: 0,
            ahead: 0,
            free,
            under_way: BTreeMap::new(),
            arrived: BTreeMap::new(),
        }
    }

    /// What is drained.
    pub fn staged(&self) -> &Staged {
        &self.staged
    }

    /// Takes the next piece out; false when all are out.
    pub fn step(&mut self, device: &mut dyn Device, sink: &mut dyn Sink) -> Result<bool, Error> {
        let Some(&piece) = self.staged.pieces.get(self.next) else {
            return Ok(false);
        };
        self.fetch(device)?;
        let spot = match piece.spot.place {
            Place::Host => piece.spot,
            Place::Gpu(_) => self.wait_for(device, self.next)?,
        };
        let bytes = device.host(spot, piece.bytes)?;
        let found = digest(bytes);
        if !agree(piece.digest, Some(found)) {
            return Err(self.staged.changed(&piece));
        }
        sink.write(piece.source, bytes, found)?;
        self.staged.pieces[self.next].digest = Some(found);
        if self.arrived.remove(&self.next).is_some() {
            self.free.push(spot);
        }
        self.next += 1;
        self.give_back_emptied(device, piece.spot.place);
        Ok(true)
    }

    /// A GPU's memory is the program's again as soon as nothing lies there any more.
    fn give_back_emptied(&mut self, device: &mut dyn Device, place: Place) {
        let left = &self.staged.pieces[self.next..];
        if place == Place::Host || left.iter().any(|piece| piece.spot.place == place) {
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
