//! The totals of a launch's checkpoints, for `status` and for monitoring of many jobs.

use stillpoint_protocol::command::{CommittedEpoch, Tally};
use stillpoint_refusals::Refusal;

/// Checkpoints of this launch.
#[derive(Debug, Default)]
pub struct Record {
    pub committed: u64,
    /// Those that were refused or given up.
    pub aborted: u64,
    pub last_failure: Option<Refusal>,
    pub tally: Tally,
}

impl Record {
    /// Counts a committed epoch.
    pub fn committed(&mut self, outcome: &CommittedEpoch) {
        self.committed += 1;
        let tally = &mut self.tally;
        tally.stored_bytes += outcome.stored_bytes;
        tally.stopped_seconds += outcome.stopped;
        for (phase, seconds) in &outcome.phases {
            *tally.phase_seconds.entry(phase.clone()).or_default() += seconds;
        }
    }

    /// Counts a checkpoint that was refused or given up.
    pub fn given_up(&mut self, reason: Refusal) {
        self.aborted += 1;
        let code = reason.code().name().to_owned();
        *self.tally.refusals.entry(code).or_default() += 1;
        self.last_failure = Some(reason);
    }
}
