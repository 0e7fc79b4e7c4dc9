//! The base of this rank's next image: the last committed one, the memory that has been written to since, and the blocks of it that really
//! differ.

mod devices;
mod known;
mod left;
mod parts;
mod state;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use stillpoint_faults::{Point, pass};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::crew::Crew;
use stillpoint_image::delta::within;
use stillpoint_image::pages::Pages;
use stillpoint_image::{Base, Carried, ImageError, Region, Writer, Written};
use stillpoint_incremental::blocks::{BlockHashTable, BlockSize, Counts};
use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{EpochMeasurement, Method, Plan, Rates, Record};

use stillpoint_protocol::agent::Incremental;

use super::account::Account;
use super::maps::Mapping;
use super::{block_hashes, runs};
use crate::ground::ranges;
pub use devices::Devices;
use devices::{Device, Name};
use known::{State, state};
pub use known::{committed, follows, remember};
use parts::{bytes, is_scattered, narrow, parts, whole_pages, wide};
use state::{Choice, Comparison, DeviceComparison, Earlier};

/// The private memory that an image is to hold, and the way in which it gets there.
pub struct Increment {
    /// Memory to be written, or to be compared first; in order of address.
    pub changed: Vec<Range<usize>>,
    /// The numbers of all regions, shared ones too.
    pub account: Account,
    /// The next image's regions.
    regions: Vec<Range<u64>>,
    earlier: Earlier,
    choice: Choice,
    comparison: Comparison,
    devices: DeviceComparison,
    outcome: EpochMeasurement,
}

impl Increment {
    /// Makes an increment that holds all memory.
    pub fn whole(private: Vec<Range<usize>>, regions: &[Region]) -> Increment {
        let mut account = Account::of(regions);
        account.touched(&private);
        Increment {
            outcome: EpochMeasurement {
                touched: bytes(&private),
                ..EpochMeasurement::default()
            },
            changed: private,
            account,
            regions: regions.iter().map(Region::range).collect(),
            earlier: Earlier::default(),
            choice: Choice::default(),
            comparison: Comparison::of_nothing(BlockSize::PAGE),
            devices: DeviceComparison::default(),
        }
    }

    /// Prepares for a device's memory, which becomes this content of the image.
    fn device(&self, name: Name, number: u32, bytes: u64) -> Device {
        let before = self.devices.before.get(&name).cloned();
        let before = before.zip(self.earlier.base.as_ref());
        match self.devices.hashers {
            Some(_) => devices::compared((number, bytes), before, &self.earlier.left),
            None => Device::new(number, None, None),
        }
    }

    /// Writes the changed parts of these ranges.
    pub fn write(
        &mut self,
        writer: &mut Writer,
        ranges: &[Range<usize>],
        pages: &dyn Pages,
        crew: Crew,
    ) -> Result<(), ImageError> {
        let (compared, others) = ranges::split(ranges, &self.comparison.ranges);
        self.put(writer, &others, pages)?;
        if compared.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let found = block_hashes::compare(&self.comparison.before, &compared, pages, crew);
        let found = found.map_err(ImageError::io(writer.path(), "compare memory"))?;
        self.outcome.hash_seconds += begun.elapsed().as_secs_f64();
        for (region, counts) in found.counts {
            *self.comparison.counts.entry(region).or_default() += counts;
        }
        self.account.hashed(&compared);
        self.account.hash_dirty(&found.otherwise);
        self.comparison
            .now
            .add(found.table)
            .map_err(|error| ImageError::Unwritable {
                path: writer.path().to_owned(),
                problem: error.to_string(),
            })?;
        self.comparison.stretches += found.changed.len();
        if is_scattered(0, self.comparison.stretches) {
            // There are too many small changes, so they are written with the bytes between them.
            return self.put(writer, &compared, pages);
        }
        // Unchanged memory may lie in images that the next one must not need.
        let unchanged = within(&wide(&found.unchanged), &self.regions);
        let Earlier { base, left, .. } = &self.earlier;
        let carried = base.as_ref().map(|base| base.carry(&unchanged));
        let again = carried.map(|mut carried| narrow(&carried.leave(|image| left.contains(image))));
        let again = ranges::joined(again.unwrap_or_default());
        let (again, kept) = ranges::split(&found.unchanged, &again);
        self.earlier.kept.extend(kept);
        let changed = ranges::joined(found.changed.into_iter().chain(again).collect());
        let changed = ranges::split(&changed, &narrow(&self.regions)).0;
        self.put(writer, &changed, pages)
    }

    fn put(
        &mut self,
        writer: &mut Writer,
        ranges: &[Range<usize>],
        pages: &dyn Pages,
    ) -> Result<(), ImageError> {
        let begun = Instant::now();
        writer.memory(&runs(ranges, pages))?;
        self.account.written(ranges);
        self.outcome.written += bytes(ranges);
        self.outcome.write_seconds += begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// Adds memory that several processes may have, and that is written whole as a content of its own.
    pub fn add_contents(&mut self, ranges: &[Range<usize>]) {
        self.account.touched(ranges);
        self.account.written(ranges);
        if self.earlier.base.is_some() {
            self.account.page_dirty(ranges);
        }
    }

    /// Returns the chunks that the image has in earlier ones, when everything else is written.
    pub fn carried(&self) -> Carried {
        let Some(base) = &self.earlier.base else {
            return Carried::default();
        };
        let kept = ranges::joined(self.earlier.kept.clone());
        base.carry_with_devices(
            &within(&wide(&kept), &self.regions),
            &self.devices.unchanged,
        )
    }

    /// Returns the prediction and the outcome; `finishing` is the time that it took to finish and sync the image.
    fn record(&self, finishing: f64) -> Record {
        let plan = self.choice.plan.as_ref();
        let mut all = Counts::default();
        for counts in self.comparison.counts.values() {
            all += *counts;
        }
        Record {
            tracking: self.choice.tracking,
            predicted: plan.map(|(plan, _)| plan.predicted),
            regions: plan.map(|(plan, _)| plan.taken).unwrap_or_default(),
            outcome: EpochMeasurement {
                hashed: all.hashed,
                hash_dirty: all.changed,
                write_seconds: self.outcome.write_seconds + finishing,
                alpha: all.alpha(),
                ..self.outcome
            },
            devices: self.devices.outcome,
        }
    }
}

/// Returns the image that the next one, at `image`, may build on, if it is there with all images that it needs. This opens files of the
/// checkpoint directory and may take any time, so the caller must not be inside.
pub fn earlier(image: &Path, how: Incremental) -> Option<Base> {
    pass(Point::EarlierImages);
    if how == Incremental::Off {
        return None;
    }
    // The state is not locked while this thread waits for the file system.
    let known = state()
        .as_ref()
        .and_then(|state| state.base.as_ref())
        .map(|(base, _)| base.clone());
    let mut base = known?;
    // The images of the other ranks are committed, so their lengths and digests can be read.
    base.settle(image).ok()?;
    base.check(image).ok()?;
    Some(base)
}

/// Finds the memory that has been written to since the image before, which is `earlier`. Without an image to build on, all of `private` is
/// to be written. `unseen` says whether a device may have written without a page fault.
///
/// # Safety
/// Every thread of the upper half must be stopped.
pub unsafe fn since_the_last(
    earlier: Option<Base>,
    how: Incremental,
    unseen: bool,
    private: Vec<Range<usize>>,
    mappings: &[Mapping],
    regions: &[Region],
) -> Increment {
    let mut state = state();
    let state = state.get_or_insert_with(State::new);
    state.next = None;
    let rates = state.rates();
    let looked = state.tracker.look(mappings, unseen).is_ok();
    let tracking = state.tracker.tracking();
    let found = match (&mut state.base, earlier) {
        (Some((base, _)), Some(earlier)) if base.image == earlier.image => {
            *base = earlier;
            true
        }
        _ => false,
    };
    let written = state.tracker.written().len();
    let is_there = |(base, _): &&(Base, Arc<BlockHashTable>)| {
        looked && found && !is_scattered(base.tables.runs.len(), written)
    };
    // A stretch of an image lies in one mapping.
    let mapped: Vec<Range<usize>> = mappings.iter().map(Mapping::addresses).collect();
    let cut = |ranges| ranges::split(&ranges::joined(ranges), &mapped).0;
    let private = cut(private);
    let Some((base, old)) = state.base.as_ref().filter(is_there) else {
        let parts = parts(&private, &[], &[], None);
        return Increment {
            choice: Choice {
                tracking: Some(tracking),
                plan: Some((Plan::whole(rates, &parts), parts)),
            },
            comparison: Comparison {
                ranges: match looked && hashes_at_once(tracking, how, rates) {
                    true => private.clone(),
                    false => Vec::new(),
                },
                ..Comparison::of_nothing(tracking.block())
            },
            devices: DeviceComparison {
                hashers: state.hashers(how),
                ..DeviceComparison::default()
            },
            ..Increment::whole(private, regions)
        };
    };
    // Hashes of blocks of another size are of no use.
    let old = match old.block_size() == tracking.block() {
        true => Arc::clone(old),
        false => Arc::new(BlockHashTable::new(tracking.block())),
    };
    let mut increment = Increment::whole(private, regions);
    let (written, same) = ranges::split(&increment.changed, state.tracker.written());
    let left = left::left(base);
    let mut carried = base.carry(&within(&wide(&same), &increment.regions));
    let again = narrow(&carried.leave(|image| left.contains(image)))
        .into_iter()
        .map(whole_pages);
    let (again, unchanged) = ranges::split(&same, &ranges::joined(again.collect()));
    let parts = parts(&increment.changed, &written, &again, Some(&old));
    let forced = match how {
        Incremental::Pages => Some(Method::Page),
        Incremental::Blocks => Some(Method::Hash),
        Incremental::Auto | Incremental::Off => None,
    };
    let plan = state.histories.decide(rates, &parts, forced);
    let compared = ranges::split(&written, &narrow(&plan.hashed())).0;
    increment.account.knows_what_was_written_to();
    increment.account.page_dirty(&written);
    increment.outcome.page_dirty = Some(bytes(&written));
    increment.changed = cut(written.into_iter().chain(again).collect());
    Increment {
        earlier: Earlier {
            base: Some(base.clone()),
            left,
            kept: unchanged,
        },
        choice: Choice {
            tracking: Some(tracking),
            plan: Some((plan, parts)),
        },
        comparison: Comparison {
            ranges: compared,
            now: block_hashes::only(BlockHashTable::clone(&old), &same),
            before: old,
            ..Comparison::of_nothing(tracking.block())
        },
        devices: DeviceComparison {
            hashers: state.hashers(how),
            before: Arc::clone(&state.devices),
            ..DeviceComparison::default()
        },
        ..increment
    }
}

/// Returns whether an image without a base is hashed as well. It is if the next one is going to compare in any case. It also is
/// if pages are not told apart, because the next image could not leave out anything otherwise. If they are told apart, pages that
/// are not written to again need never be hashed.
fn hashes_at_once(tracking: Tracking, how: Incremental, rates: Rates) -> bool {
    match how {
        Incremental::Blocks => true,
        _ => how.hashes() && !tracking.tells_pages() && rates.pays(1.0),
    }
}

/// Notes that the image of this epoch is written; `finishing` is the time that it took to finish and sync it. Returns the prediction and
/// the outcome.
pub fn written(
    epoch: Epoch,
    rank: Rank,
    written: &Written,
    increment: Increment,
    finishing: f64,
) -> Record {
    let record = increment.record(finishing);
    if let (Some(state), Some((plan, parts))) = (&mut *state(), &increment.choice.plan) {
        let EpochMeasurement {
            hashed,
            written: bytes,
            hash_seconds,
            write_seconds,
            ..
        } = record.outcome;
        state.writing.record(bytes, write_seconds);
        state.hashing.record(hashed, hash_seconds);
        if let Some(of) = &record.devices {
            state.by_gpus.record(of.by_gpus, of.gpu_seconds);
        }
        state
            .histories
            .record(plan, &increment.comparison.counts, parts);
        let base = written.base(epoch, rank);
        let (table, devices) = (
            Arc::new(increment.comparison.now),
            Arc::new(increment.devices.now),
        );
        state.next = Some((epoch, base, table, devices));
    }
    record
}
