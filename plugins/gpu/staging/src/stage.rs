//! Staging: copies every byte of the sources to its place, while the ranks stand still.

use std::collections::BTreeSet;
use std::time::Duration;

use stillpoint_gpu_plan::streams::UNMEASURED;
use stillpoint_gpu_plan::{
    Copied, Copies, CopyRoute, Node, Record, Scheduling, Source, StagingPlace,
};
use stillpoint_ids::{Epoch, Rank};

use crate::Error;
use crate::device::{Copy, Device, DeviceError, Digest, Spot, digest};
use crate::places::{self, Reserved, ReservedPlan};
use crate::pump::Pump;

/// Chooses how a way copies so many bytes, and predicts the seconds.
pub type Choice<'a> = dyn Fn(CopyRoute, u64) -> (Copies, Option<f64>) + 'a;

/// The settings for staging.
#[derive(Clone, std::marker::Copy)]
pub struct Settings<'a> {
    pub scheduling: Scheduling,
    pub choice: &'a Choice<'a>,
    /// How each rank's part is drained, through slots of host memory that are reserved with everything else. No piece is larger than one slot,
    /// whatever is chosen for a way.
    pub drain: Copies,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            scheduling: Scheduling::Exact,
            choice: &|_, _| (UNMEASURED, None),
            drain: UNMEASURED,
        }
    }
}

/// Bytes that were copied at once.
#[derive(Clone, std::marker::Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The source's number in the list of sources.
    pub source: usize,
    pub offset: u64,
    pub bytes: u64,
    pub spot: Spot,
    /// The digest, or `None` if the bytes have not been in host memory yet, and the device does not hash.
    pub digest: Option<Digest>,
}

/// The copies of one way.
#[derive(Clone, PartialEq, Debug)]
pub struct ByWay {
    pub way: CopyRoute,
    pub bytes: u64,
    pub copies: Copies,
    /// The model's prediction in seconds.
    pub predicted: Option<f64>,
    /// Seconds from the first copy of all until this way's last had ended.
    pub seconds: f64,
}

/// The measured and the predicted time.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    pub ways: Vec<ByWay>,
    /// Seconds until the last copy had ended.
    pub seconds: f64,
    /// The longest of the times by link bandwidths and of the models' predictions for each way.
    pub predicted: f64,
}

impl Measured {
    /// Adds the copies of every way to the record, for the next epoch's models.
    pub fn add_to(&self, record: &mut Record, node: &Node, driver: &str, epoch: Epoch) {
        for by in &self.ways {
            let copied = Copied {
                epoch,
                sample: by.copies.sample(by.bytes, by.seconds),
                predicted: by.predicted,
                back: false,
            };
            let uuid = &node.gpus[by.way.from].uuid;
            record.add(uuid, driver, node.way_name(by.way), copied);
        }
    }
}

/// The places of all staged bytes. [`Staged::give_back`] gives the memory back, or a drain that has come to its end.
#[derive(Debug)]
pub struct Staged {
    pub(crate) sources: Vec<Source>,
    /// The pieces in the order of the sources, and within a source in the order of its bytes.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) reserved: Reserved,
    /// The slots of the first rank; those of the others are behind.
    pub(crate) slots: Spot,
    pub(crate) drain: Copies,
    pub measured: Measured,
}

impl Staged {
    /// Returns the pieces in the order of the sources, and within a source in the order of its bytes.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns the part of one rank, for its own drain or fill: its sources in their order, slots of its own, and no memory to give back. The
    /// caller keeps `self` meanwhile.
    pub fn of(&self, rank: Rank) -> Staged {
        let mine = |source: usize| self.sources[source].rank == rank;
        let number = |source: usize| (0..source).filter(|before| mine(*before)).count();
        let pieces = self.pieces.iter().filter(|piece| mine(piece.source));
        let sources = self.sources.iter().filter(|source| source.rank == rank);
        // A rank without memory has no slots.
        let before = ranks(&self.sources).range(..rank).count() as u64;
        Staged {
            sources: sources.copied().collect(),
            pieces: pieces
                .map(|piece| Piece {
                    source: number(piece.source),
                    ..*piece
                })
                .collect(),
            reserved: Reserved::new(),
            slots: self.slots.after(before * self.drain.slots()),
            drain: self.drain,
            measured: self.measured.clone(),
        }
    }

    /// Returns the reserved memory: a place, its beginning, its length. There is one entry a place; in host memory it includes the slots of
    /// all drains.
    pub fn reserved(&self) -> &[(StagingPlace, Spot, u64)] {
        &self.reserved
    }

    /// Returns the bytes of host memory for the slots of each rank's drain.
    pub fn drain_slots(&self) -> u64 {
        self.drain.slots()
    }

    /// Tells whether any of the bytes lie in a place.
    pub fn is_on(&self, place: StagingPlace) -> bool {
        self.pieces.iter().any(|piece| piece.spot.place == place)
    }

    /// Gives all reserved memory back, so that nothing is staged any more.
    pub fn give_back(self, device: &mut dyn Device) {
        places::give_back(device, &self.reserved);
    }

    pub(crate) fn changed(&self, piece: &Piece) -> Error {
        changed(&self.sources, piece)
    }
}

/// Returns the ranks that have memory.
pub(crate) fn ranks(sources: &[Source]) -> BTreeSet<Rank> {
    sources.iter().map(|source| source.rank).collect()
}

pub(crate) fn changed(sources: &[Source], piece: &Piece) -> Error {
    Error::Changed {
        rank: sources[piece.source].rank,
        number: piece.source,
        offset: piece.offset,
        bytes: piece.bytes,
    }
}

/// Stages all sources. The node's GPUs have the numbers of the device, which reports their free memory.
pub fn stage(
    device: &mut dyn Device,
    node: &Node,
    sources: &[Source],
    settings: &Settings<'_>,
) -> Result<Staged, Error> {
    let places = places::reserve(device, node, sources, settings)?;
    match copy_all(device, &places, sources, settings) {
        Ok((pieces, measured)) => Ok(Staged {
            sources: sources.to_vec(),
            pieces,
            reserved: places.reserved,
            slots: places.slots,
            drain: settings.drain,
            measured,
        }),
        Err(error) => {
            // No copy may still be under way into memory that may get another owner.
            device.settle();
            places::give_back(device, &places.reserved);
            Err(error)
        }
    }
}

fn copy_all(
    device: &mut dyn Device,
    places: &ReservedPlan,
    sources: &[Source],
    settings: &Settings<'_>,
) -> Result<(Vec<Piece>, Measured), Error> {
    let mut pump = Pump::default();
    let mut chosen = Vec::new();
    for &(way, bytes) in &places.plan.loads {
        let (mut copies, predicted) = (settings.choice)(way, bytes);
        // A piece is drained through one slot.
        copies.slot = copies.slot.clamp(1, settings.drain.slot.max(1));
        pump.line((StagingPlace::Gpu(way.from), way.to), copies);
        chosen.push((way, copies, predicted));
    }
    let slot = |from: usize, to: StagingPlace| {
        let chosen = chosen
            .iter()
            .find(|(way, ..)| *way == CopyRoute { from, to });
        chosen.map_or(1, |(_, copies, _)| copies.slot)
    };
    let begin = |place: StagingPlace| {
        let reserved = places.reserved.iter().find(|(of, ..)| *of == place);
        reserved.map(|(_, spot, _)| *spot)
    };
    let mut pieces = Vec::new();
    for part in &places.plan.parts {
        let Some(first) = begin(part.place) else {
            continue;
        };
        let slot = slot(sources[part.source].gpu, part.place);
        let mut done = 0;
        while done < part.bytes {
            let bytes = slot.min(part.bytes - done);
            pieces.push(Piece {
                source: part.source,
                offset: part.offset + done,
                bytes,
                spot: first.after(part.at + done),
                digest: None,
            });
            done += bytes;
        }
    }
    let began = device.now();
    for (number, piece) in pieces.iter_mut().enumerate() {
        let source = &sources[piece.source];
        let from = Spot {
            place: StagingPlace::Gpu(source.gpu),
            address: source.address + piece.offset,
        };
        piece.digest = device.digest(from, piece.bytes)?;
        let copy = Copy {
            from,
            to: piece.spot,
            bytes: piece.bytes,
        };
        pump.add(number, copy);
    }
    while let Some(number) = pump.next(device)? {
        let piece = &pieces[number];
        // The next copies are under way while this one is checked.
        pump.begin(device)?;
        // If the source has a hash, the copy is checked before the source is let go. Otherwise hashing can wait for the drain, which runs
        // beside the program.
        if piece.digest.is_some()
            && !agree(piece.digest, digest_at(device, piece.spot, piece.bytes)?)
        {
            return Err(changed(sources, piece));
        }
    }
    let measured = measured(&pump, &chosen, places, began);
    Ok((pieces, measured))
}

/// Computes the digest of the bytes at a spot; returns `None` if the spot is on a GPU that does not hash.
pub(crate) fn digest_at(
    device: &mut dyn Device,
    spot: Spot,
    bytes: u64,
) -> Result<Option<Digest>, DeviceError> {
    match spot.place {
        StagingPlace::Host => device.host(spot, bytes).map(|bytes| Some(digest(bytes))),
        StagingPlace::Gpu(_) => device.digest(spot, bytes),
    }
}

/// Tells whether two digests are equal, if both are known.
pub(crate) fn agree(one: Option<Digest>, other: Option<Digest>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

fn measured(
    pump: &Pump,
    chosen: &[(CopyRoute, Copies, Option<f64>)],
    places: &ReservedPlan,
    began: Duration,
) -> Measured {
    let mut ways = Vec::new();
    let mut seconds = 0.0f64;
    let mut predicted = places.plan.blocking.as_secs_f64();
    for (between, line) in pump.lines() {
        let this = |(way, ..): &&(CopyRoute, Copies, Option<f64>)| {
            (StagingPlace::Gpu(way.from), way.to) == *between
        };
        let Some((way, copies, said)) = chosen.iter().find(this) else {
            continue;
        };
        let took = line.ended.saturating_sub(began).as_secs_f64();
        seconds = seconds.max(took);
        predicted = predicted.max(said.unwrap_or(0.0));
        ways.push(ByWay {
            way: *way,
            bytes: line.bytes,
            copies: *copies,
            predicted: *said,
            seconds: took,
        });
    }
    Measured {
        ways,
        seconds,
        predicted,
    }
}
