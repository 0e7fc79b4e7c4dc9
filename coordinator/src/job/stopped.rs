//! Ranks whose processes are stopped, by a signal or a debugger: they answer nothing until somebody lets them run on.
//!
//! This is a hindrance that may pass. The attempt is given up, so that the other ranks run on meanwhile. A stopped rank is not waited for then: it runs on,
//! as it was ordered to, before it hears of another attempt.

use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_refusals::{Refusal, refusal};

use super::ending::AbortReason;
use super::phase::Phase;
use super::{Job, StoppedRank};

/// The time after which a phase looks for such ranks.
const LONG: Duration = Duration::from_secs(1);

impl Job {
    /// Whether the application stands still, or soon will, while the attempt under way waits for answers of ranks.
    pub fn awaits_ranks(&self) -> bool {
        let attempt = self.attempt.as_ref();
        let runs_on = attempt.is_some_and(|attempt| attempt.times.has_run_on());
        let releases = attempt.is_some_and(|attempt| attempt.phase == Phase::Release);
        self.may_abort() && !runs_on || releases
    }

    /// The ranks that the attempt under way has waited for so long that their processes are looked at.
    pub fn awaited(&self, now: Duration) -> Vec<Rank> {
        let attempt = self.attempt.as_ref().filter(|_| self.awaits_ranks());
        let Some(attempt) = attempt.filter(|attempt| now >= attempt.times.phase_began + LONG)
        else {
            return vec![];
        };
        let ranks = Rank::all(self.settings.ranks);
        ranks.filter(|rank| attempt.awaits(*rank)).collect()
    }

    pub(super) fn on_stopped(&mut self, ranks: &[StoppedRank], now: Duration) {
        let Some(attempt) = self.attempt.as_ref().filter(|_| self.awaits_ranks()) else {
            return;
        };
        let phase = attempt.phase;
        let awaited = ranks.iter().filter(|stopped| attempt.awaits(stopped.rank));
        let awaited: Vec<StoppedRank> = awaited.copied().collect();
        if phase == Phase::Release {
            for stopped in awaited {
                self.on_released(stopped.rank, now);
            }
        } else if !awaited.is_empty() {
            let reasons = awaited.into_iter().map(|stopped| self.stop(stopped));
            let reasons: Vec<Refusal> = reasons.collect();
            self.abort(AbortReason::Refused(reasons), now);
        }
    }

    /// The reason that a stopped rank is.
    fn stop(&self, stopped: StoppedRank) -> Refusal {
        let named = self.roster.named(stopped.rank);
        let process = self.roster.get(stopped.rank).and_then(|r| r.hello.as_ref());
        let process = process.map_or(0, |hello| hello.pid);
        match stopped.tracer {
            Some(tracer) => refusal!(
                StoppedRank,
                "{named} is stopped by a debugger, process {tracer}: let the rank run on there, or detach the debugger"
            ),
            None => refusal!(
                StoppedRank,
                "{named} is stopped by a signal, such as SIGSTOP: let it run on with kill -CONT {process}"
            ),
        }
    }
}
