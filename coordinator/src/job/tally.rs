//! The totals of a launch's checkpoints, for monitoring of many jobs.

use stillpoint_protocol::command::{CommittedEpoch, Tally};
use stillpoint_refusals::Code;

/// Counts a committed epoch.
pub fn committed(tally: &mut Tally, outcome: &CommittedEpoch) {
    tally.stored_bytes += outcome.stored_bytes;
    tally.stopped_seconds += outcome.stopped;
    for (phase, seconds) in &outcome.phases {
        *tally.phase_seconds.entry(phase.clone()).or_default() += seconds;
    }
}

/// Counts a checkpoint that was refused or given up.
pub fn given_up(tally: &mut Tally, code: Code) {
    *tally.refusals.entry(code.name().to_owned()).or_default() += 1;
}
