//! Which blocks of devices' memory have changed since the epoch before, by their hashes: nothing tells what a device has written to.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use stillpoint_image::delta::Unchanged;
use stillpoint_image::devices::Uuid;
use stillpoint_image::format::CHUNK_BYTES;
use stillpoint_image::{Base, ImageError, Origin, PageRun, Writer};
use stillpoint_incremental::blocks::{BlockSize, Slice, Table};

use super::{Increment, narrow, wide};
use crate::gpu::staged::Taker;
use crate::ground::ranges;

/// Blocks: a hash for each 64 KiB takes 0.015 % of the devices' memory.
const BLOCK: BlockSize = BlockSize::LARGEST;

/// A device, and the place of its memory among the rank's: a device may have several.
pub type Name = (Uuid, usize);

/// The content that a memory is in the image, and the hashes of its blocks.
type Hashes = (u32, Table);

/// Of each memory of devices of an epoch.
pub type Known = BTreeMap<Name, Hashes>;

/// What is to be known of a memory, and what of it stays where it is.
type Came = (Hashes, Option<Unchanged>);

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
        let device = self.increment.device(name, number);
        self.memories.push((uuid, device));
        Ok(())
    }

    fn next(&mut self, place: usize, bytes: &[u8]) -> Result<(), ImageError> {
        let none = || {
            let problem = format!("bytes come of memory {place}, which did not begin");
            ImageError::io(self.writer.path(), "write a device's memory")(io::Error::other(problem))
        };
        let (_, device) = self.memories.get_mut(place).ok_or_else(none)?;
        device.next(self.writer, bytes)
    }

    fn all_have_come(&mut self) -> Result<(), ImageError> {
        for (place, (uuid, device)) in self.memories.drain(..).enumerate() {
            self.increment
                .device_has_come((uuid, place), device, self.writer)?;
        }
        Ok(())
    }
}

/// One device's memory on its way into the image.
pub(super) struct Device {
    number: u32,
    /// Where the bytes begin that have come and are not written yet.
    at: u64,
    bytes: Vec<u8>,
    /// `None`: all of it is written.
    comparing: Option<Comparing>,
}

struct Comparing {
    /// The content that it was, and its hashes.
    before: Option<Hashes>,
    /// What lies where it is not to be looked for any more.
    left: Vec<Range<usize>>,
    table: Table,
    unchanged: Vec<Range<usize>>,
}

impl Device {
    /// Memory that is content `number` now.
    pub fn whole(number: u32) -> Device {
        Device {
            number,
            at: 0,
            bytes: Vec::new(),
            comparing: None,
        }
    }

    /// The same, compared with what is known of it and lies in the base, but for these images.
    pub fn compared(number: u32, before: Option<(Hashes, &Base)>, left: &[Origin]) -> Device {
        let lies = before
            .as_ref()
            .map(|((was, _), base)| base.lying_in(*was, left));
        Device {
            comparing: Some(Comparing {
                before: before.map(|(before, _)| before),
                left: ranges::joined(narrow(&lies.unwrap_or_default())),
                table: Table::new(BLOCK),
                unchanged: Vec::new(),
            }),
            ..Device::whole(number)
        }
    }

    /// Its next bytes, however many.
    pub fn next(&mut self, writer: &mut Writer, bytes: &[u8]) -> Result<(), ImageError> {
        if self.comparing.is_none() {
            writer.device_bytes(self.number, self.at, bytes)?;
            self.at += bytes.len() as u64;
            return Ok(());
        }
        self.bytes.extend_from_slice(bytes);
        // Whole blocks, wherever the parts end that the bytes come in.
        let ready = self.bytes.len() / CHUNK_BYTES * CHUNK_BYTES;
        self.put(writer, ready)
    }

    /// All bytes have come. Gives what is to be known of it, and what of it stays where it is.
    pub fn end(mut self, writer: &mut Writer) -> Result<Option<Came>, ImageError> {
        self.put(writer, self.bytes.len())?;
        Ok(self.comparing.map(|comparing| {
            let unchanged = comparing.before.map(|(was, _)| Unchanged {
                was,
                is: self.number,
                ranges: wide(&ranges::joined(comparing.unchanged)),
            });
            ((self.number, comparing.table), unchanged)
        }))
    }

    /// Writes what has changed of the first of the bytes that have come.
    fn put(&mut self, writer: &mut Writer, ready: usize) -> Result<(), ImageError> {
        let Some(comparing) = self.comparing.as_mut().filter(|_| ready > 0) else {
            return Ok(());
        };
        let start = self.at as usize;
        let region = self.at..self.at + ready as u64;
        let cannot = ImageError::io(writer.path(), "compare a device's memory");
        let differs = comparing.differing(region.clone(), &self.bytes[..ready]);
        let differs = differs.map_err(cannot)?;
        let run = |range: &Range<usize>| PageRun {
            address: range.start as u64,
            bytes: self.bytes[range.start - start..range.end - start].into(),
        };
        let runs: Vec<PageRun<'_>> = differs.iter().map(run).collect();
        writer.device_runs(self.number, &runs)?;
        self.bytes.drain(..ready);
        self.at = region.end;
        Ok(())
    }
}

impl Comparing {
    /// What is to be written of these bytes; the rest is unchanged.
    fn differing(&mut self, region: Range<u64>, bytes: &[u8]) -> io::Result<Vec<Range<usize>>> {
        let nothing = Table::new(BLOCK);
        let old = self.before.as_ref().map_or(&nothing, |(_, table)| table);
        let start = region.start;
        let pages = 0..u64::MAX;
        let compared = old
            .compare(
                region.clone(),
                std::slice::from_ref(&pages),
                &mut Slice { start, bytes },
            )
            .map_err(io::Error::other)?;
        self.table.add(compared.table).map_err(io::Error::other)?;
        let whole = region.start as usize..region.end as usize;
        let block = BLOCK.bytes() as usize;
        let (again, _) = ranges::split(&self.left, std::slice::from_ref(&whole));
        let again = again.into_iter().map(|range| {
            let end = range.end.next_multiple_of(block).min(whole.end);
            range.start / block * block..end
        });
        let changes = compared.changes.into_iter();
        let changes = changes.map(|change| change.at.start as usize..change.at.end as usize);
        let differs = ranges::joined(changes.chain(again).collect());
        let (_, unchanged) = ranges::split(std::slice::from_ref(&whole), &differs);
        self.unchanged.extend(unchanged);
        Ok(differs)
    }
}
