//! The process's knowledge of its epochs.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use stillpoint_gpu_messages::Hashers;
use stillpoint_ids::Epoch;
use stillpoint_image::{Base, Index};
use stillpoint_incremental::blocks::{BlockHashTable, Hash};
use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{Measured, Rates, Regions};
use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::launch::Launch;

use super::devices::{self, Known};
use crate::capture::maps::Mapping;
use crate::capture::tracking::Tracker;

/// Bytes a second, until they have been measured.
const RATES: Rates = Rates {
    beta_ckpt: 1e9,
    beta_hash: 5e9,
};

/// The process's knowledge of its epochs.
pub(super) struct State {
    pub(super) tracker: Tracker,
    pub(super) base: Option<(Base, Arc<BlockHashTable>)>,
    /// The hashes of devices' memory in the base.
    pub(super) devices: Arc<Known>,
    /// The epoch that is written, but not yet known to be committed.
    pub(super) next: Option<(Epoch, Base, Arc<BlockHashTable>, Arc<Known>)>,
    pub(super) histories: Regions,
    pub(super) writing: Measured,
    pub(super) hashing: Measured,
    /// Hashing by GPUs, of their own memory.
    pub(super) by_gpus: Measured,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The way of tracking writes that the launch has chosen.
static TRACKING: OnceLock<Tracking> = OnceLock::new();

/// Notes the settings of the launch, before the application runs.
pub fn remember(launch: &Launch) {
    // It is the process's only launch.
    let _ = TRACKING.set(launch.tracking);
}

pub(super) fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn new() -> State {
        Hash::seed(Index::new_seed());
        State {
            tracker: Tracker::open(TRACKING.get().copied().unwrap_or_default()),
            base: None,
            devices: Arc::default(),
            next: None,
            histories: Regions::default(),
            writing: Measured::default(),
            hashing: Measured::default(),
            by_gpus: Measured::default(),
        }
    }

    /// Returns the hashers of devices' memory.
    pub(super) fn hashers(&self, how: Incremental) -> Option<Hashers> {
        let gpu_rate = self.by_gpus.rate().unwrap_or(devices::GPU_RATE);
        devices::hashers(how, self.rates(), gpu_rate)
    }

    pub(super) fn rates(&self) -> Rates {
        Rates {
            beta_ckpt: self.writing.rate().unwrap_or(RATES.beta_ckpt),
            beta_hash: self.hashing.rate().unwrap_or(RATES.beta_hash),
        }
    }
}

/// Notes that the epoch is committed, and has its name: the next one builds on it.
pub fn committed(epoch: Epoch) {
    if let Some(state) = &mut *state()
        && let Some((_, base, table, devices)) = state.next.take_if(|(next, ..)| *next == epoch)
    {
        state.base = Some((base, table));
        state.devices = devices;
        state.tracker.committed();
    }
}

/// Returns whether the mapping's page faults are handled for tracking, and not for the application.
pub fn follows(mapping: &Mapping) -> bool {
    let state = state();
    let tracker = state.as_ref().map(|state| &state.tracker);
    tracker.is_some_and(|tracker| tracker.follows(mapping))
}
