//! What this rank's next image builds on: the last committed one, and what has been written since.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stillpoint_image::{Base, Carried, Region, Written};

use super::maps::Mapping;
use super::tracking::Tracker;
use crate::ground::ranges;

/// Earlier images that one has chunks in, at most: as many files a restart opens.
const MOST_ORIGINS: usize = 8;

/// What the process knows of its epochs.
#[derive(Default)]
struct State {
    tracker: Option<Tracker>,
    base: Option<Base>,
    /// Written, and not committed as far as is known.
    next: Option<(u64, Base)>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an image has to hold of private memory.
#[derive(Debug, Default)]
pub struct Increment {
    /// What lies in earlier images.
    pub carried: Carried,
    /// What is to be written, in order of address.
    pub changed: Vec<Range<usize>>,
}

/// Looks at what has been written since the image before, for one at `image`. Without one to build on, all of `private` is to be written.
///
/// # Safety
/// Every thread of the upper half must be stopped.
pub unsafe fn since_the_last(
    image: &Path,
    private: &[Range<usize>],
    mappings: &[Mapping],
    regions: &[Region],
) -> Increment {
    let mut state = state();
    let state = state.get_or_insert_default();
    state.next = None;
    // A stretch of an image lies in one mapping.
    let mapped: Vec<Range<usize>> = mappings.iter().map(|one| one.start..one.end).collect();
    let cut = |ranges| ranges::split(&ranges::joined(ranges), &mapped).0;
    let private = cut(private.to_vec());
    if state.tracker.is_none() {
        // On an older kernel every page counts as written.
        state.tracker = Tracker::open().ok();
    }
    let looked = match &mut state.tracker {
        Some(tracker) => tracker.look(mappings).is_ok(),
        None => false,
    };
    let usable = state
        .base
        .as_ref()
        .filter(|base| looked && base.check(image).is_ok());
    let (Some(base), Some(tracker)) = (usable, &state.tracker) else {
        return Increment {
            changed: private,
            ..Increment::default()
        };
    };
    let (written, unchanged) = ranges::split(&private, tracker.written());
    let wide = |range: Range<usize>| range.start as u64..range.end as u64;
    let unchanged: Vec<Range<u64>> = unchanged.into_iter().map(wide).collect();
    let regions: Vec<Range<u64>> = regions.iter().map(Region::range).collect();
    let (carried, renewed) = base.carry_within(&unchanged, &regions, MOST_ORIGINS);
    let narrow = |range: Range<u64>| range.start as usize..range.end as usize;
    let changed = written.into_iter().chain(renewed.into_iter().map(narrow));
    Increment {
        carried,
        changed: cut(changed.collect()),
    }
}

/// The image of this epoch is written.
pub fn written(epoch: u64, rank: u32, written: &Written) {
    if let Some(state) = &mut *state() {
        state.next = Some((epoch, written.base(epoch, rank)));
    }
}

/// The epoch is committed, and has its name: the next one builds on it.
pub fn committed(epoch: u64) {
    if let Some(state) = &mut *state()
        && let Some((_, base)) = state.next.take_if(|(next, _)| *next == epoch)
    {
        state.base = Some(base);
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
