//! Memory that changes at random. Pages are mapped and unmapped, so that regions grow, shrink, join and part. Pages are also moved,
//! written to, and marked dirty without a change.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use stillpoint_incremental::blocks::{BlockSize, Memory, PAGE, Slice};

/// The number of pages of all addresses: three of the largest blocks.
pub const PAGES: u64 = 48;

/// A change to a region between epochs.
#[derive(Clone, Debug)]
enum Event {
    Map(Range<u64>),
    Unmap(Range<u64>),
    /// Sets bytes from an address on, often to their old values.
    Write(u64, u64, u8),
    /// Writes to a page without changing it.
    Touch(u64),
}

/// Memory as an epoch finds it.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// The range that was moved before all else, and its new address.
    pub moved: Option<(Range<u64>, u64)>,
    /// Regions by address; no two touch.
    pub regions: Vec<(u64, Vec<u8>)>,
    /// Pages that were written to or mapped since the last epoch.
    pub dirty: Vec<Range<u64>>,
}

#[derive(Clone, Debug)]
pub struct History {
    pub block: BlockSize,
    pub epochs: Vec<Epoch>,
}

pub fn block_sizes() -> impl Strategy<Value = BlockSize> {
    prop::sample::select(BlockSize::all().collect::<Vec<_>>())
}

fn pages() -> impl Strategy<Value = Range<u64>> {
    (0..PAGES, 1..=20u64).prop_map(|(first, count)| first..(first + count).min(PAGES))
}

fn event() -> impl Strategy<Value = Event> {
    let write = (0..PAGES * PAGE, 1..3000u64, 0..3u8);
    prop_oneof![
        2 => pages().prop_map(Event::Map),
        1 => pages().prop_map(Event::Unmap),
        4 => write.prop_map(|(start, length, value)| Event::Write(start, length, value)),
        2 => (0..PAGES).prop_map(Event::Touch),
    ]
}

pub fn histories() -> impl Strategy<Value = History> {
    let moved = prop::option::weighted(0.3, (pages(), 0..PAGES));
    let epochs = vec((moved, vec(event(), 0..12)), 1..6);
    (block_sizes(), epochs).prop_map(|(block, events)| {
        let mut space = Space::default();
        let epochs = events.into_iter().map(|(moved, events)| {
            let moved = moved.and_then(|(from, to)| space.moved(from, to));
            events.into_iter().for_each(|event| space.happens(event));
            space.epoch(moved)
        });
        let epochs = epochs.collect();
        History { block, epochs }
    })
}

/// The pages that are mapped.
struct Space {
    pages: Vec<Option<Vec<u8>>>,
    dirty: Vec<bool>,
}

impl Default for Space {
    fn default() -> Space {
        Space {
            pages: vec![None; PAGES as usize],
            dirty: vec![false; PAGES as usize],
        }
    }
}

impl Space {
    /// Moves pages if the places do not overlap. Moving does not make them dirty.
    fn moved(&mut self, from: Range<u64>, to: u64) -> Option<(Range<u64>, u64)> {
        let count = (from.end - from.start).min(PAGES - to);
        let from = from.start..from.start + count;
        if from.start < to + count && to < from.end {
            return None;
        }
        for (old, new) in from.clone().zip(to..) {
            self.pages[new as usize] = self.pages[old as usize].take();
        }
        Some((from.start * PAGE..from.end * PAGE, to * PAGE))
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Map(pages) => {
                for page in pages.start as usize..pages.end as usize {
                    if self.pages[page].is_none() {
                        self.pages[page] = Some(vec![0; PAGE as usize]);
                        self.dirty[page] = true;
                    }
                }
            }
            Event::Unmap(pages) => {
                for page in pages {
                    self.pages[page as usize] = None;
                }
            }
            Event::Write(start, length, value) => {
                for address in start..(start + length).min(PAGES * PAGE) {
                    let page = (address / PAGE) as usize;
                    if let Some(bytes) = &mut self.pages[page] {
                        bytes[(address % PAGE) as usize] = value;
                        self.dirty[page] = true;
                    }
                }
            }
            Event::Touch(page) => self.dirty[page as usize] = true,
        }
    }

    fn epoch(&mut self, moved: Option<(Range<u64>, u64)>) -> Epoch {
        let mut regions: Vec<(u64, Vec<u8>)> = Vec::new();
        for (page, bytes) in (0..).zip(&self.pages) {
            let Some(bytes) = bytes else { continue };
            match regions.last_mut() {
                Some((start, before)) if *start + before.len() as u64 == page * PAGE => {
                    before.extend(bytes);
                }
                _ => regions.push((page * PAGE, bytes.clone())),
            }
        }
        let dirty = (0..PAGES).filter(|page| std::mem::take(&mut self.dirty[*page as usize]));
        let dirty = dirty.map(|page| page..page + 1).collect();
        Epoch {
            moved,
            regions,
            dirty,
        }
    }
}

/// The blocks of a stretch.
pub fn blocks(size: BlockSize, of: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let (of, size) = (of.clone(), size.bytes());
    (of.start / size..of.end.div_ceil(size))
        .map(move |number| (number * size).max(of.start)..((number + 1) * size).min(of.end))
}

/// The newest bytes of each address in all epochs so far.
#[derive(Clone)]
pub struct Image {
    bytes: Vec<u8>,
    /// Whether each smallest block has been written.
    said: Vec<bool>,
}

const UNIT: usize = 64;

impl Default for Image {
    fn default() -> Image {
        let length = (PAGES * PAGE) as usize;
        Image {
            bytes: vec![0; length],
            said: vec![false; length / UNIT],
        }
    }
}

impl Image {
    pub fn write(&mut self, start: u64, bytes: &[u8]) {
        let (start, end) = (start as usize, start as usize + bytes.len());
        self.bytes[start..end].copy_from_slice(bytes);
        self.said[start / UNIT..end / UNIT].fill(true);
    }

    pub fn moved(&mut self, from: &Range<u64>, to: u64) {
        let (first, last, to) = (from.start as usize, from.end as usize, to as usize);
        self.bytes.copy_within(first..last, to);
        self.said.copy_within(first / UNIT..last / UNIT, to / UNIT);
        self.said[first / UNIT..last / UNIT].fill(false);
    }

    /// Tells whether the image has exactly these bytes there.
    pub fn has(&self, at: &Range<u64>, bytes: &[u8]) -> bool {
        let (start, end) = (at.start as usize, at.end as usize);
        self.bytes[start..end] == *bytes
            && self.said[start / UNIT..end / UNIT].iter().all(|said| *said)
    }
}

/// Memory that counts the requested bytes.
pub struct Asked<'a> {
    memory: Slice<'a>,
    pub bytes: u64,
}

impl<'a> Asked<'a> {
    pub fn of(memory: Slice<'a>) -> Asked<'a> {
        Asked { memory, bytes: 0 }
    }
}

impl Memory for Asked<'_> {
    type Error = std::convert::Infallible;

    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], Self::Error> {
        assert!(range.end - range.start <= BlockSize::LARGEST.bytes());
        self.bytes += range.end - range.start;
        self.memory.bytes(range)
    }
}

/// Memory that no longer exists.
pub struct Broken;

impl Memory for Broken {
    type Error = &'static str;

    fn bytes(&mut self, _: Range<u64>) -> Result<&[u8], Self::Error> {
        Err("it was taken back")
    }
}
