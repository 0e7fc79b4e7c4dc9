//! The memory that an epoch takes over from the one before it: unchanged memory stays where it was written.
//!
//! ```text
//! base (epoch 4)      chunk a: epoch 1's image      chunk b: epoch 4's own
//!                     ├── live ──┼─ dead ─┤         ├────────── live ──────────┤
//! unchanged                ├────────┤                    ├───┤      ├───┤
//! carried (epoch 5)   ├dead┼live┼── dead ─┤         ├dead┼───┼ dead ┼───┼─ dead ┤
//! ```
//!
//! Everything here is pure. A carried chunk is not read for it; the new image refers to the place where the chunk lies, however often it
//! has been carried before.

use std::ops::Range;
use std::sync::Arc;

use crate::error::ImageError;
use crate::format::{ChunkRecord, NOWHERE, RunRecord};
use crate::origins::{Holder, Origin, Share, Tables};

/// An image in which the next epoch's image may have chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The image itself.
    pub image: Origin,
    pub tables: Arc<Tables>,
    /// The other images of its epoch that hold chunks of it, by rank. Their lengths and digests are known when they are
    /// [settled](Base::settle). Chunks that are carried from them before that are refused when they are read.
    pub(crate) siblings: Vec<Origin>,
}

/// The memory of a device that has not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchanged {
    /// The number of its content in the base.
    pub was: u32,
    /// The number of its content in the next image.
    pub is: u32,
    /// Offsets, sorted; they do not overlap.
    pub ranges: Vec<Range<u64>>,
}

/// The chunks of an image that lie in earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Tables in which every chunk lies in another image.
    pub(crate) tables: Tables,
}

impl Base {
    /// Makes a base of an image and its tables. The lengths and digests of its siblings are unknown as yet.
    pub fn new(image: Origin, tables: Arc<Tables>) -> Base {
        let others = tables.siblings.iter().copied();
        let others = others.filter(|rank| Some(*rank) != image.rank());
        let siblings = others.map(|rank| Origin::of(image.epoch, rank, 0, 0));
        Base {
            siblings: siblings.collect(),
            image,
            tables,
        }
    }

    /// Looks up the lengths and digests of the image's siblings, when their epoch is committed; for a new image at `image`.
    ///
    /// # Errors
    /// One of the siblings is missing.
    pub fn settle(&mut self, image: &std::path::Path) -> Result<(), ImageError> {
        let mut unknown = self.siblings.iter_mut().filter(|it| it.bytes == 0);
        unknown.try_for_each(|sibling| sibling.settle(image))
    }

    /// Returns the images in which the next one may have chunks, by epoch and rank.
    pub fn images(&self) -> impl DoubleEndedIterator<Item = &Origin> {
        let (before, behind) = self.siblings.split_at(self.place());
        let earlier = self.tables.origins.iter();
        earlier.chain(before).chain([&self.image]).chain(behind)
    }

    /// Returns the number of siblings that have lower ranks.
    fn place(&self) -> usize {
        let rank = self.image.rank();
        self.siblings
            .partition_point(|sibling| sibling.rank() < rank)
    }

    /// Carries the memory that has not changed since. `unchanged` is sorted and does not overlap; a run is cut at every border of it, also
    /// where one range begins as another ends.
    pub fn carry(&self, unchanged: &[Range<u64>]) -> Carried {
        self.carry_with_devices(unchanged, &[])
    }

    /// Does the same, and carries unchanged memory of devices.
    pub fn carry_with_devices(&self, unchanged: &[Range<u64>], devices: &[Unchanged]) -> Carried {
        let tables = &self.tables;
        let kept = |space: u32| match space {
            0 => Some((0, unchanged)),
            _ => {
                let device = devices.iter().find(|device| device.was == space)?;
                Some((device.is, device.ranges.as_slice()))
            }
        };
        let number = self.numbers();
        // Sorted by the image that holds them. Chunks of one image are in its order already, except those with several records.
        let mut chunks: Vec<(u32, &ChunkRecord)> = (tables.chunks.iter())
            .map(|chunk| (number(chunk) as u32 + 1, chunk))
            .collect();
        chunks.sort_by_key(|(origin, chunk)| (*origin, chunk.offset));
        let mut carried = Carried {
            tables: Tables {
                origins: self.images().cloned().collect(),
                ..Tables::default()
            },
        };
        let mut pieces = Vec::new();
        for (origin, chunk) in chunks {
            pieces.clear();
            for run in tables.runs_of(chunk) {
                match kept(run.space) {
                    Some((space, unchanged)) => cut(run, space, unchanged, &mut pieces),
                    None => dead(u64::from(run.bytes), &mut pieces),
                }
            }
            if pieces.iter().any(|run: &RunRecord| run.space != NOWHERE) {
                let chunk = ChunkRecord { origin, ..*chunk };
                carried.tables.push(chunk, &pieces);
            }
        }
        carried.drop_unneeded();
        carried
    }

    /// Returns the ranges of a content that lie in some of the images, sorted.
    pub fn lying_in(&self, content: u32, images: &[Origin]) -> Vec<Range<u64>> {
        let all: Vec<&Origin> = self.images().collect();
        let number = self.numbers();
        let mut found = Vec::new();
        for chunk in &self.tables.chunks {
            let image = all.get(number(chunk));
            if image.is_some_and(|image| images.contains(image)) {
                let runs = self.tables.runs_of(chunk).iter();
                let runs = runs.filter(|run| run.space == content);
                found.extend(runs.map(|run| run.address..run.address + u64::from(run.bytes)));
            }
        }
        found.sort_unstable_by_key(|range: &Range<u64>| range.start);
        found
    }

    /// Returns a function from a chunk to the place of the image that holds it, among [`Base::images`].
    fn numbers(&self) -> impl Fn(&ChunkRecord) -> usize {
        let tables = &self.tables;
        let origins = tables.origins.len();
        let itself = origins + self.place();
        move |chunk: &ChunkRecord| match tables.holder(chunk) {
            Holder::Itself => itself,
            Holder::Origin(origin) => origin,
            Holder::Sibling(sibling) => {
                let rank = tables.siblings.get(sibling).copied();
                let is_it = |sibling: &Origin| sibling.rank() == rank;
                match self.siblings.iter().position(is_it) {
                    None => itself,
                    Some(place) => origins + place + usize::from(origins + place >= itself),
                }
            }
        }
    }

    /// Does the same for the next epoch's regions, from at most `most` images. Returns what is carried, and the unchanged memory that has
    /// to be written again because it lies in images that are too old.
    pub fn carry_within(
        &self,
        unchanged: &[Range<u64>],
        regions: &[Range<u64>],
        most: usize,
    ) -> (Carried, Vec<Range<u64>>) {
        let mut carried = self.carry(&within(unchanged, regions));
        let renewed = carried.keep_newest(most);
        (carried, renewed)
    }

    /// Checks that the image, and every image that it needs, is still there for a new one at `image`.
    pub fn check(&self, image: &std::path::Path) -> Result<(), ImageError> {
        self.images().try_for_each(|origin| origin.check(image))
    }
}

impl Carried {
    pub fn is_empty(&self) -> bool {
        self.tables.chunks.is_empty()
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the share of each earlier image that is still needed, the oldest first.
    pub fn shares(&self) -> Vec<Share> {
        self.tables.shares()
    }

    /// Drops what lies in the oldest images until at most `most` are left. Returns the memory that was in them, sorted: it has to be
    /// written. Memory of devices is not returned; a caller that carries such memory calls [`Base::lying_in`] first.
    pub fn keep_newest(&mut self, most: usize) -> Vec<Range<u64>> {
        let surplus = self.tables.origins.len().saturating_sub(most) as u32;
        self.drop_where(|chunk| chunk.origin <= surplus)
    }

    /// Drops what lies in some images, and returns the memory that was in them, sorted: it has to be written.
    pub fn leave(&mut self, left: impl Fn(&Origin) -> bool) -> Vec<Range<u64>> {
        let left: Vec<bool> = self.tables.origins.iter().map(left).collect();
        self.drop_where(|chunk| left.get(chunk.origin as usize - 1) == Some(&true))
    }

    fn drop_where(&mut self, dropped: impl Fn(&ChunkRecord) -> bool) -> Vec<Range<u64>> {
        let old = std::mem::take(&mut self.tables);
        self.tables.origins = old.origins.clone();
        let mut memory = Vec::new();
        for chunk in &old.chunks {
            let runs = old.runs_of(chunk);
            if dropped(chunk) {
                let live = runs.iter().filter(|run| run.space == 0);
                memory.extend(live.map(|run| run.address..run.address + u64::from(run.bytes)));
            } else {
                self.tables.push(*chunk, runs);
            }
        }
        self.drop_unneeded();
        memory.sort_unstable_by_key(|range| range.start);
        memory
    }

    /// Drops origins that hold no chunk, and gives the others new numbers.
    fn drop_unneeded(&mut self) {
        let tables = &mut self.tables;
        let mut needed = vec![false; tables.origins.len()];
        for chunk in &tables.chunks {
            needed[chunk.origin as usize - 1] = true;
        }
        let mut count = 0;
        let numbers: Vec<u32> = needed
            .iter()
            .map(|needed| {
                count += u32::from(*needed);
                count
            })
            .collect();
        for chunk in &mut tables.chunks {
            chunk.origin = numbers[chunk.origin as usize - 1];
        }
        let mut kept = needed.into_iter();
        tables.origins.retain(|_| kept.next().unwrap_or(false));
    }
}

/// Cuts a run into pieces: those in `unchanged` are live, in that space; all others are dead.
fn cut(run: &RunRecord, space: u32, unchanged: &[Range<u64>], pieces: &mut Vec<RunRecord>) {
    let mut at = run.address;
    let end = run.address + u64::from(run.bytes);
    let first = unchanged.partition_point(|range| range.end <= at);
    for range in unchanged[first..]
        .iter()
        .take_while(|range| range.start < end)
    {
        let (from, to) = (range.start.max(at), range.end.min(end));
        if from < to {
            dead(from - at, pieces);
            pieces.push(RunRecord {
                address: from,
                bytes: (to - from) as u32,
                space,
            });
            at = to;
        }
    }
    dead(end - at, pieces);
}

/// Adds dead bytes; if the last piece is dead, it becomes longer.
fn dead(bytes: u64, pieces: &mut Vec<RunRecord>) {
    let bytes = bytes as u32;
    match pieces.last_mut() {
        _ if bytes == 0 => {}
        Some(last) if last.space == NOWHERE => last.bytes += bytes,
        _ => pieces.push(RunRecord {
            address: 0,
            bytes,
            space: NOWHERE,
        }),
    }
}

/// Cuts ranges at the borders of regions and drops what lies in none. Both lists are sorted and do not overlap.
pub fn within(ranges: &[Range<u64>], regions: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut inside = Vec::new();
    for range in ranges {
        let first = regions.partition_point(|region| region.end <= range.start);
        let touched = regions[first..]
            .iter()
            .take_while(|region| region.start < range.end);
        let parts = touched.map(|region| region.start.max(range.start)..region.end.min(range.end));
        inside.extend(parts.filter(|part| part.start < part.end));
    }
    inside
}

#[cfg(test)]
mod tests;
