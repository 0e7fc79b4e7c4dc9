//! What takes long: whom or what a checkpoint waits for, for whoever waits for the checkpoint.

use std::collections::BTreeSet;
use std::time::Duration;

use stillpoint_protocol::command::ToCommand;

use super::phase::Phase;
use super::{Job, Output};

/// A phase, or a flush, that takes longer is said to.
const LONG: Duration = Duration::from_secs(2);

impl Job {
    /// Whether anybody waits for a checkpoint under way.
    pub fn is_waited_for(&self) -> bool {
        let listens = self.attempt.is_some() && !self.wait_for_attempt().is_empty();
        listens || self.staging.is_waited_for()
    }

    /// Who waits for the attempt under way: for its epoch, or for its end, behind which a checkpoint of their own begins.
    fn wait_for_attempt(&self) -> BTreeSet<u64> {
        let behind = self.wanted.iter().filter_map(|wanted| wanted.watcher);
        self.listeners().into_iter().chain(behind).collect()
    }

    /// Tells them what takes long, if anything does.
    pub fn tell_what_takes_long(&mut self, now: Duration) -> Vec<Output> {
        let reasons: Vec<String> = self.takes_long(now).collect();
        if !reasons.is_empty() {
            let mut watchers = self.wait_for_attempt();
            watchers.extend(self.staging.watchers());
            self.tell(watchers, ToCommand::Hindered { reasons });
        }
        std::mem::take(&mut self.outputs)
    }

    /// What a checkpoint waits for and has waited for long.
    pub(super) fn takes_long(&self, now: Duration) -> impl Iterator<Item = String> + '_ {
        let attempt = self.attempt.iter();
        let attempt = attempt.filter(move |attempt| {
            // Ranks say themselves what keeps them from their targets.
            let known = attempt.phase == Phase::Reach && !attempt.late().is_empty();
            !known && now >= attempt.phase_began() + LONG
        });
        let attempt = attempt.map(|attempt| {
            let (epoch, phase) = (attempt.epoch, attempt.phase);
            format!("epoch {epoch}, {phase}: {}", attempt.waits_for())
        });
        attempt.chain(self.staging.flushes_for(now, LONG))
    }
}
