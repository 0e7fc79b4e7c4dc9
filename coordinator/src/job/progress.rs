//! Reports on phases that take long, for commands that wait for a checkpoint.

use std::collections::BTreeSet;
use std::time::Duration;

use stillpoint_protocol::command::ToCommand;
use stillpoint_refusals::{Refusal, refusal};

use super::phase::Phase;
use super::{Job, Output};

/// The time after which a phase, or a flush, is reported.
const LONG: Duration = Duration::from_secs(2);

impl Job {
    /// Whether a command waits for the checkpoint under way.
    pub fn is_waited_for(&self) -> bool {
        let listens = self.attempt.is_some() && !self.wait_for_attempt().is_empty();
        listens || self.staging.is_waited_for()
    }

    /// The commands that wait for the attempt under way: for its epoch, or for its end, after which their own checkpoint begins.
    fn wait_for_attempt(&self) -> BTreeSet<u64> {
        let behind = self
            .requests
            .wanted
            .iter()
            .filter_map(|wanted| wanted.watcher);
        self.listeners().into_iter().chain(behind).collect()
    }

    /// Tells these commands what takes long, if anything does.
    pub fn tell_what_takes_long(&mut self, now: Duration) -> Vec<Output> {
        self.note_what_takes_long(now);
        let reasons: Vec<Refusal> = self.takes_long(now).collect();
        if !reasons.is_empty() {
            let mut watchers = self.wait_for_attempt();
            watchers.extend(self.staging.watchers());
            self.tell(watchers, ToCommand::Hindered { reasons });
        }
        std::mem::take(&mut self.outputs)
    }

    /// Describes the phase or the flush that a checkpoint has waited for long.
    pub(super) fn takes_long(&self, now: Duration) -> impl Iterator<Item = Refusal> + '_ {
        let attempt = self.attempt.iter();
        let attempt = attempt.filter(move |attempt| {
            // The ranks have reported themselves what keeps them from their targets.
            let known = attempt.phase == Phase::Reach && !attempt.late().is_empty();
            !known && now >= attempt.times.phase_began + LONG
        });
        let attempt = attempt.map(|attempt| {
            let (epoch, phase) = (attempt.epoch, attempt.phase);
            refusal!(JobBusy, "epoch {epoch}, {phase}: {}", attempt.waits_for())
        });
        attempt.chain(self.staging.flushes_for(now, LONG))
    }
}
