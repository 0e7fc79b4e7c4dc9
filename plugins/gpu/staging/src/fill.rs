//! Filling: copies staged memory, or an image's bytes, to the device memory that the program goes on with.

use std::collections::BTreeMap;

use stillpoint_gpu_plan::streams::UNMEASURED;
use stillpoint_gpu_plan::{Back, Copied, Copies, Node, Record, Source, StagingPlace};
use stillpoint_ids::{Epoch, Rank};

use crate::Error;
use crate::device::{Copy, Device, Digest, Spot, digest};
use crate::pump::Pump;
use crate::stage::{Piece, Staged, agree, changed, digest_at};

/// Bytes of a rank's device memory, from its image.
pub trait Bytes {
    /// Reads the next bytes of a source, by its number in the list of targets, and returns their expected digest, if that is known.
    /// Sources come in their order, and so do the bytes of each.
    fn read(&mut self, source: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError>;
}

/// The reason why there are no more bytes.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank}: {problem}")]
pub struct BytesError {
    pub rank: Rank,
    pub problem: String,
}

/// Chooses how so many bytes come back by a way in copies of that size, and predicts the seconds.
pub type BackChoice<'a> = dyn Fn(Back, u64, u64) -> (Copies, Option<f64>) + 'a;

/// The copies of one way back.
#[derive(Clone, PartialEq, Debug)]
pub struct ByWayBack {
    pub way: Back,
    pub bytes: u64,
    pub copies: Copies,
    /// The model's prediction in seconds.
    pub predicted: Option<f64>,
    /// Seconds from the first copy of all until this way's last had ended.
    pub seconds: f64,
}

/// The copies of all ways back.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct MeasuredBack {
    pub ways: Vec<ByWayBack>,
}

impl MeasuredBack {
    /// Adds the copies of every way to the record, for the next epoch's models.
    pub fn add_to(&self, record: &mut Record, node: &Node, driver: &str, epoch: Epoch) {
        for by in &self.ways {
            let (uuid, name) = node.back_name(by.way);
            let copied = Copied {
                epoch,
                sample: by.copies.sample(by.bytes, by.seconds),
                predicted: by.predicted,
                back: true,
            };
            record.add(uuid, driver, name, copied);
        }
    }
}

/// Copies staged memory back to the ranks' device memory, over all ways at once. The staged memory stays, to be drained. The targets are the
/// staged sources in the same order, but their addresses and GPUs may be different.
pub fn fill_back(
    device: &mut dyn Device,
    staged: &Staged,
    targets: &[Source],
    choice: &BackChoice<'_>,
) -> Result<MeasuredBack, Error> {
    let same = |one: &Source, other: &Source| (one.rank, one.bytes) == (other.rank, other.bytes);
    let of = staged.sources.len().max(targets.len());
    for number in 0..of {
        match (staged.sources.get(number), targets.get(number)) {
            (Some(source), Some(target)) if same(source, target) => {}
            (source, target) => {
                let known = source
                    .or(target)
                    .map_or((Rank::FIRST, 0), |known| (known.rank, known.bytes));
                return Err(Error::NotTheSame {
                    number,
                    rank: known.0,
                    bytes: known.1,
                });
            }
        }
    }
    let filled = fill_pieces(device, staged, targets, choice);
    if filled.is_err() {
        device.settle();
    }
    filled
}

fn fill_pieces(
    device: &mut dyn Device,
    staged: &Staged,
    targets: &[Source],
    choice: &BackChoice<'_>,
) -> Result<MeasuredBack, Error> {
    let mut pump = Pump::default();
    // Bytes of each way, and of its largest copy.
    let mut loads: BTreeMap<Back, (u64, u64)> = BTreeMap::new();
    let way = |piece: &Piece| Back {
        from: piece.spot.place,
        to: targets[piece.source].gpu,
    };
    for piece in &staged.pieces {
        let (bytes, largest) = loads.entry(way(piece)).or_default();
        (*bytes, *largest) = (*bytes + piece.bytes, piece.bytes.max(*largest));
    }
    let mut ways = Vec::new();
    for (way, (bytes, slot)) in loads {
        let (copies, predicted) = choice(way, bytes, slot);
        pump.line((way.from, StagingPlace::Gpu(way.to)), copies);
        ways.push(ByWayBack {
            way,
            bytes,
            // The pieces have their sizes already.
            copies: Copies { slot, ..copies },
            predicted,
            seconds: 0.0,
        });
    }
    for (number, piece) in staged.pieces.iter().enumerate() {
        // Another program may have written to host memory by mistake.
        if piece.spot.place == StagingPlace::Host
            && piece.digest.is_some()
            && !agree(piece.digest, digest_at(device, piece.spot, piece.bytes)?)
        {
            return Err(staged.changed(piece));
        }
        let to = target(targets, piece.source, piece.offset);
        let copy = Copy {
            from: piece.spot,
            to,
            bytes: piece.bytes,
        };
        pump.add(number, copy);
    }
    let began = device.now();
    while let Some(number) = pump.next(device)? {
        let piece = &staged.pieces[number];
        let to = target(targets, piece.source, piece.offset);
        if !agree(piece.digest, digest_at(device, to, piece.bytes)?) {
            return Err(staged.changed(piece));
        }
    }
    let lines: BTreeMap<_, _> = pump.lines().collect();
    for by in &mut ways {
        if let Some(line) = lines.get(&(by.way.from, StagingPlace::Gpu(by.way.to))) {
            by.seconds = line.ended.saturating_sub(began).as_secs_f64();
        }
    }
    Ok(MeasuredBack { ways })
}

fn target(targets: &[Source], source: usize, offset: u64) -> Spot {
    let target = &targets[source];
    Spot {
        place: StagingPlace::Gpu(target.gpu),
        address: target.address + offset,
    }
}

/// Copies an image's bytes to the ranks' device memory, through slots of host memory: while one is read into, others are copied. `choice` says how
/// so many bytes come to a GPU. The number and size of slots are those of the most demanding GPU.
pub fn fill_from(
    device: &mut dyn Device,
    targets: &[Source],
    bytes: &mut dyn Bytes,
    choice: &dyn Fn(usize, u64) -> Copies,
) -> Result<(), Error> {
    let mut loads: BTreeMap<usize, u64> = BTreeMap::new();
    for target in targets {
        *loads.entry(target.gpu).or_default() += target.bytes;
    }
    let chosen = loads
        .into_iter()
        .map(|(gpu, bytes)| (gpu, choice(gpu, bytes)));
    let by_gpu: BTreeMap<usize, Copies> = chosen.collect();
    let copies = Copies {
        streams: by_gpu.values().map(|of| of.streams).max().unwrap_or(1),
        slot: by_gpu.values().map(|of| of.slot).max().unwrap_or(1).max(1),
    };
    let slots = device.reserve(StagingPlace::Host, copies.slots())?;
    let count = copies.slots() / copies.slot;
    let free = (0..count).map(|at| slots.after(at * copies.slot)).collect();
    let filled = fill_through(device, targets, bytes, &by_gpu, free);
    device.settle();
    device.give_back(slots);
    filled
}

fn fill_through(
    device: &mut dyn Device,
    targets: &[Source],
    bytes: &mut dyn Bytes,
    by_gpu: &BTreeMap<usize, Copies>,
    mut free: Vec<Spot>,
) -> Result<(), Error> {
    let mut pump = Pump::default();
    let mut under_way: BTreeMap<usize, (Piece, Spot)> = BTreeMap::new();
    let arrive = |device: &mut dyn Device, pump: &mut Pump, under_way: &mut BTreeMap<_, _>| {
        let ended = pump.next(device)?;
        let Some((piece, slot)) = ended.and_then(|number| under_way.remove(&number)) else {
            return Ok(None);
        };
        let piece: Piece = piece;
        let to = target(targets, piece.source, piece.offset);
        if !agree(piece.digest, digest_at(device, to, piece.bytes)?) {
            return Err(changed(targets, &piece));
        }
        Ok::<Option<Spot>, Error>(Some(slot))
    };
    let (mut number, hashes) = (0, device.can_hash());
    for (source, memory) in targets.iter().enumerate() {
        let mut offset = 0;
        let copies = by_gpu.get(&memory.gpu).copied().unwrap_or(UNMEASURED);
        pump.line((StagingPlace::Host, StagingPlace::Gpu(memory.gpu)), copies);
        while offset < memory.bytes {
            let slot = match free.pop() {
                Some(slot) => slot,
                None => match arrive(device, &mut pump, &mut under_way)? {
                    Some(slot) => slot,
                    None => return Err(Error::NoSlot { slot: copies.slot }),
                },
            };
            let size = copies.slot.max(1).min(memory.bytes - offset);
            let into = device.host_mut(slot, size)?;
            let expected = bytes.read(source, into)?;
            let hashed = expected.is_some() || hashes;
            let found = hashed.then(|| digest(into));
            let piece = Piece {
                source,
                offset,
                bytes: size,
                spot: slot,
                digest: found,
            };
            if !agree(expected, found) {
                return Err(changed(targets, &piece));
            }
            let copy = Copy {
                from: slot,
                to: target(targets, source, offset),
                bytes: size,
            };
            pump.add(number, copy);
            pump.begin(device)?;
            under_way.insert(number, (piece, slot));
            (number, offset) = (number + 1, offset + size);
        }
    }
    while arrive(device, &mut pump, &mut under_way)?.is_some() {}
    Ok(())
}
