//! Filling: what was staged, or what an image holds, comes to the device memory that the program goes on with.

use std::collections::BTreeMap;

use stillpoint_gpu_plan::{Copies, Place, Source};

use crate::Error;
use crate::device::{Copy, Device, Digest, Spot, digest};
use crate::pump::Pump;
use crate::stage::{Piece, Staged, agree, changed, digest_at};

/// Bytes of a rank's device memory, from its image.
pub trait Bytes {
    /// The next bytes of a source, which is known by its number in the list of targets, and what their digest should be, if that is known.
    /// Sources come in their order, and so do the bytes of each.
    fn read(&mut self, source: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError>;
}

/// Why there are no more bytes.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank}: {problem}")]
pub struct BytesError {
    pub rank: u32,
    pub problem: String,
}

/// Copies what is staged back to the ranks' device memory, over all ways at once. What is staged stays where it is, to be drained. The targets
/// are those that were staged, in the same order; their addresses, and the GPUs that they lie on, may be others.
pub fn fill_back(
    device: &mut dyn Device,
    staged: &Staged,
    targets: &[Source],
    copies: Copies,
) -> Result<(), Error> {
    let same = |one: &Source, other: &Source| (one.rank, one.bytes) == (other.rank, other.bytes);
    let of = staged.sources.len().max(targets.len());
    for number in 0..of {
        match (staged.sources.get(number), targets.get(number)) {
            (Some(source), Some(target)) if same(source, target) => {}
            (source, target) => {
                let known = source
                    .or(target)
                    .map_or((0, 0), |known| (known.rank, known.bytes));
                return Err(Error::NotTheSame {
                    number,
                    rank: known.0,
                    bytes: known.1,
                });
            }
        }
    }
    let filled = fill_pieces(device, staged, targets, copies);
    if filled.is_err() {
        device.settle();
    }
    filled
}

fn fill_pieces(
    device: &mut dyn Device,
    staged: &Staged,
    targets: &[Source],
    copies: Copies,
) -> Result<(), Error> {
    let mut pump = Pump::default();
    for (number, piece) in staged.pieces.iter().enumerate() {
        // Host memory may have been written to by whoever had no business there.
        if piece.spot.place == Place::Host
            && !agree(piece.digest, digest_at(device, piece.spot, piece.bytes)?)
        {
            return Err(staged.changed(piece));
        }
        let to = target(targets, piece.source, piece.offset);
        pump.line((piece.spot.place, to.place), copies);
        let copy = Copy {
            from: piece.spot,
            to,
            bytes: piece.bytes,
        };
        pump.add(number, copy);
    }
    while let Some(number) = pump.next(device)? {
        let piece = &staged.pieces[number];
        let to = target(targets, piece.source, piece.offset);
        if !agree(piece.digest, digest_at(device, to, piece.bytes)?) {
            return Err(staged.changed(piece));
        }
    }
    Ok(())
}

fn target(targets: &[Source], source: usize, offset: u64) -> Spot {
    let target = &targets[source];
    Spot {
        place: Place::Gpu(target.gpu),
        address: target.address + offset,
    }
}

/// Copies what is read to the ranks' device memory, through slots of host memory: while one is read into, others are on their way.
pub fn fill_from(
    device: &mut dyn Device,
    targets: &[Source],
    bytes: &mut dyn Bytes,
    copies: Copies,
) -> Result<(), Error> {
    let count = 2 * u64::from(copies.streams.max(1));
    let slots = device.reserve(Place::Host, copies.slot * count)?;
    let free = (0..count).map(|at| slots.after(at * copies.slot)).collect();
    let filled = fill_through(device, targets, bytes, copies, free);
    device.settle();
    device.give_back(slots);
    filled
}

fn fill_through(
    device: &mut dyn Device,
    targets: &[Source],
    bytes: &mut dyn Bytes,
    copies: Copies,
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
    let mut number = 0;
    for (source, memory) in targets.iter().enumerate() {
        let mut offset = 0;
        pump.line((Place::Host, Place::Gpu(memory.gpu)), copies);
        while offset < memory.bytes {
            let slot = match free.pop() {
                Some(slot) => slot,
                None => match arrive(device, &mut pump, &mut under_way)? {
                    Some(slot) => slot,
                    None => return Err(Error::NoSlot { slot: copies.slot }),
                },
            };
            let size = copies.slot.min(memory.bytes - offset);
            let into = device.host_mut(slot, size)?;
            let expected = bytes.read(source, into)?;
            let found = digest(into);
            let piece = Piece {
                source,
                offset,
                bytes: size,
                spot: slot,
                digest: Some(found),
            };
            if !agree(expected, Some(found)) {
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
