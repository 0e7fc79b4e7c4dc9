//! Looks for ranks whose processes are stopped.

use std::collections::BTreeMap;

use stillpoint_ids::Rank;
use stillpoint_protocol::process::{Process, Stop};

use crate::job::StoppedRank;

/// The stops that the last look has seen.
#[derive(Default)]
pub(super) struct Stops(BTreeMap<Rank, Stop>);

impl Stops {
    /// Returns those of the ranks that have not run since the last look. A process that a debugger lets run on after each moment is not stopped. Processes on
    /// other hosts cannot be seen.
    pub fn look(&mut self, ranks: &[Rank], processes: &[Option<Process>]) -> Vec<StoppedRank> {
        let stop = |rank: &Rank| {
            let process = processes.get(rank.index())?.as_ref()?;
            Some((*rank, process.stop()?))
        };
        let now: BTreeMap<Rank, Stop> = ranks.iter().filter_map(stop).collect();
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
