//! Looks for ranks whose processes are stopped.

use std::collections::BTreeMap;

use stillpoint_protocol::process::{Process, Stop};

use crate::job::StoppedRank;

/// The stops that the last look has seen.
#[derive(Default)]
pub(super) struct Stops(BTreeMap<u32, Stop>);

impl Stops {
    /// Returns those of the ranks that have not run since the last look. A process that a debugger lets run on after each moment is not stopped. Processes on
    /// other hosts cannot be seen.
    pub fn look(&mut self, ranks: &[u32], processes: &[Option<Process>]) -> Vec<StoppedRank> {
        let stop = |rank: &u32| {
            let process = processes.get(*rank as usize)?.as_ref()?;
            Some((*rank, process.stop()?))
        };
        let now: BTreeMap<u32, Stop> = ranks.iter().filter_map(stop).collect();
        let lasts = now
            .iter()
            .filter(|(rank, stop)| self.0.get(rank) == Some(stop));
        let stopped = lasts.map(|(rank, stop)| StoppedRank {
            rank: *rank,
            tracer: stop.tracer,
        });
        let stopped = stopped.collect();
        self.0 = now;
        stopped
    }
}
