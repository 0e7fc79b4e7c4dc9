//! What this rank's next image builds on: the last committed one, what has been written since, and what of that really differs.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stillpoint_image::delta::within;
use stillpoint_image::format::PAGE;
use stillpoint_image::pages::Pages;
use stillpoint_image::{Base, Carried, ImageError, Region, Writer, Written};
use stillpoint_incremental::blocks::{Counts, Table};
use stillpoint_incremental::viability::{History, Load, Method, Rates};

use stillpoint_protocol::agent::Incremental;

use super::maps::Mapping;
use super::tracking::Tracker;
use super::{differ, runs};
use crate::ground::ranges;

/// Earlier images that one has chunks in, at most: as many files a restart opens.
const MOST_ORIGINS: usize = 8;

/// Bytes a second, until they have been measured.
const RATES: Rates = Rates {
    beta_ckpt: 1e9,
    beta_hash: 5e9,
};

/// What the process knows of its epochs.
struct State {
    tracker: Option<Tracker>,
    base: Option<(Base, Table)>,
    /// Written, and not committed as far as is known.
    next: Option<(u64, Base, Table)>,
    history: History,
    rates: Rates,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn new() -> State {
        State {
            // On an older kernel every page counts as written.
            tracker: Tracker::open().ok(),
            base: None,
            next: None,
            history: History::default(),
            rates: RATES,
        }
    }
}

/// What an image is to hold of private memory, and how it gets there.
pub struct Increment {
    /// To be written, or compared first; in order of address.
    pub changed: Vec<Range<usize>>,
    base: Option<(Base, Table)>,
    method: Method,
    /// The next image's regions.
    regions: Vec<Range<u64>>,
    /// Epochs that are too old to have a part in it.
    left: Vec<u64>,
    /// What stays where it is.
    kept: Vec<Range<usize>>,
    /// What is known of the next image's blocks.
    table: Table,
    counts: Counts,
    /// Bytes and seconds.
    hashed: (u64, f64),
    written: (u64, f64),
}

impl Increment {
    /// All of it.
    pub fn whole(private: Vec<Range<usize>>) -> Increment {
        Increment {
            changed: private,
            base: None,
            method: Method::Full,
            regions: Vec::new(),
            left: Vec::new(),
            kept: Vec::new(),
            table: differ::empty(),
            counts: Counts::default(),
            hashed: (0, 0.0),
            written: (0, 0.0),
        }
    }

    /// Writes what of these ranges has changed.
    pub fn write(
        &mut self,
        writer: &mut Writer,
        ranges: &[Range<usize>],
        pages: &dyn Pages,
        workers: usize,
    ) -> Result<(), ImageError> {
        let Some((base, old)) = self.base.as_ref().filter(|_| self.method == Method::Hash) else {
            return self.put(writer, ranges, pages);
        };
        let begun = Instant::now();
        let found = differ::compare(old, ranges, pages, workers);
        let found = found.map_err(ImageError::io(writer.path(), "compare memory"))?;
        self.hashed.0 += found.counts.hashed;
        self.hashed.1 += begun.elapsed().as_secs_f64();
        self.counts += found.counts;
        self.table
            .add(found.table)
            .map_err(|error| ImageError::Unwritable {
                path: writer.path().to_owned(),
                problem: error.to_string(),
            })?;
        // What is as it was may lie where it is not to be looked for any more.
        let mut again = base.carry(&within(&wide(&found.unchanged), &self.regions));
        let again = ranges::joined(narrow(&again.leave(&self.left)));
        let (again, kept) = ranges::split(&found.unchanged, &again);
        self.kept.extend(kept);
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
        self.written.0 += ranges.iter().map(|range| range.len() as u64).sum::<u64>();
        self.written.1 += begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// What the image has in earlier ones, when everything else is written.
    pub fn carried(&self) -> Carried {
        let Some((base, _)) = &self.base else {
            return Carried::default();
        };
        let kept = ranges::joined(self.kept.clone());
        base.carry(&within(&wide(&kept), &self.regions))
    }
}

/// Looks at what has been written since the image before, for one at `image`. Without one to build on, all of `private` is to be written.
///
/// # Safety
/// Every thread of the upper half must be stopped.
pub unsafe fn since_the_last(
    image: &Path,
    how: Incremental,
    private: Vec<Range<usize>>,
    mappings: &[Mapping],
    regions: &[Region],
) -> Increment {
    let mut state = state();
    let state = state.get_or_insert_with(State::new);
    state.next = None;
    let looked = match &mut state.tracker {
        Some(tracker) => tracker.look(mappings).is_ok(),
        None => false,
    };
    let is_there = |(base, _): &&(Base, Table)| looked && base.check(image).is_ok();
    let (Some((base, old)), Some(tracker)) = (state.base.as_ref().filter(is_there), &state.tracker)
    else {
        return Increment::whole(private);
    };
    // A stretch of an image lies in one mapping.
    let mapped: Vec<Range<usize>> = mappings.iter().map(|one| one.start..one.end).collect();
    let cut = |ranges| ranges::split(&ranges::joined(ranges), &mapped).0;
    let private = cut(private);
    let regions: Vec<Range<u64>> = regions.iter().map(Region::range).collect();
    let (written, unchanged) = ranges::split(&private, tracker.written());
    let left = too_old(base);
    let mut carried = base.carry(&within(&wide(&unchanged), &regions));
    let again = ranges::joined(
        narrow(&carried.leave(&left))
            .into_iter()
            .map(whole_pages)
            .collect(),
    );
    let (again, unchanged) = ranges::split(&unchanged, &again);
    let changed = cut(written.into_iter().chain(again).collect());
    let bytes = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).sum::<usize>() as f64;
    let load = Load {
        memory: bytes(&private),
        page_dirty: bytes(&changed),
        t_dirty: 0.0,
    };
    let method = match how {
        Incremental::Pages => Method::Page,
        Incremental::Blocks => Method::Hash,
        Incremental::Auto | Incremental::Off => {
            state.history.decide(&state.rates, &load, true).method
        }
    };
    let table = differ::only(old.clone(), &unchanged);
    Increment {
        base: Some((base.clone(), old.clone())),
        method,
        regions,
        left,
        kept: unchanged,
        table,
        ..Increment::whole(changed)
    }
}

/// The epochs of a base's images that the next one leaves, so that it does not have too many: the oldest.
fn too_old(base: &Base) -> Vec<u64> {
    let epochs = base.tables.origins.iter().map(|origin| origin.epoch);
    let surplus = (base.tables.origins.len() + 1).saturating_sub(MOST_ORIGINS);
    epochs.take(surplus).collect()
}

fn whole_pages(range: Range<usize>) -> Range<usize> {
    range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE)
}

fn wide(ranges: &[Range<usize>]) -> Vec<Range<u64>> {
    let wide = |range: &Range<usize>| range.start as u64..range.end as u64;
    ranges.iter().map(wide).collect()
}

fn narrow(ranges: &[Range<u64>]) -> Vec<Range<usize>> {
    let narrow = |range: &Range<u64>| range.start as usize..range.end as usize;
    ranges.iter().map(narrow).collect()
}

/// The image of this epoch is written; `finishing` is how long it took to make sure of it.
pub fn written(epoch: u64, rank: u32, written: &Written, increment: Increment, finishing: f64) {
    let mut state = state();
    let Some(state) = &mut *state else {
        return;
    };
    let rate =
        |(bytes, seconds): (u64, f64)| (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds);
    let (bytes, seconds) = increment.written;
    if let Some(beta) = rate((bytes, seconds + finishing)) {
        state.rates.beta_ckpt = beta;
    }
    if let Some(beta) = rate(increment.hashed) {
        state.rates.beta_hash = beta;
    }
    state.history.record(increment.method, &increment.counts);
    state.next = Some((epoch, written.base(epoch, rank), increment.table));
}

/// Memory has been written to unseen: there is nothing to build on.
pub fn forget() {
    *state() = None;
}

/// The epoch is committed, and has its name: the next one builds on it.
pub fn committed(epoch: u64) {
    if let Some(state) = &mut *state()
        && let Some((_, base, table)) = state.next.take_if(|(next, ..)| *next == epoch)
    {
        state.base = Some((base, table));
        if let Some(tracker) = &mut state.tracker {
            tracker.committed();
        }
    }
}

/// Whether the mapping's page faults are handled for this, and not for the application.
pub fn follows(mapping: &Mapping) -> bool {
    let state = state();
    let tracker = state.as_ref().and_then(|state| state.tracker.as_ref());
    tracker.is_some_and(|tracker| tracker.has_registered(mapping))
}
