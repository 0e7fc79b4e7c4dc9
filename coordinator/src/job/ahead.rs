//! A suspend that copies ahead. First an epoch is written while the application runs, and then at once a second one with the changes since.
//!
//! Both are ordinary attempts. While the first one is under way the suspend waits in the queue, so its turn comes in any case.

use std::time::Duration;

use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::command::Ahead;

use super::attempt::Attempt;
use super::phase::Phase;
use super::{CheckpointRequest, Job};

impl CheckpointRequest {
    /// The time at which the suspend itself has to begin: the epoch ahead takes at most half of a limited time.
    fn begins_by(&self) -> Option<Duration> {
        self.timeout.map(|timeout| self.since + timeout / 2)
    }

    /// Whether it has no command that waits, as a suspend by signal. Its time limit is unknown.
    pub(super) fn is_by_signal(&self) -> bool {
        self.watcher.is_none()
    }
}

impl Job {
    /// Whether to write an epoch ahead of this suspend, if there is time for it. It makes the stop shorter, but the job ends later.
    fn copies_ahead(&self, wanted: &CheckpointRequest, now: Duration) -> bool {
        let can = self.settings.precopy
            && self.settings.incremental != Incremental::Off
            && self.settings.copies.is_some()
            && !self.stages();
        can && wanted.suspend
            && !wanted.tried_ahead
            && self.requests.hindered.is_none()
            && wanted.begins_by().is_none_or(|by| now < by)
    }

    /// Whether the attempt that is to begin is an epoch ahead of the suspends that wait. It has to be ahead of all of them.
    pub(super) fn begins_ahead(&self, now: Duration) -> bool {
        let mut suspends = self
            .requests
            .wanted
            .iter()
            .filter(|wanted| wanted.suspend)
            .peekable();
        suspends.peek().is_some() && suspends.all(|wanted| self.copies_ahead(wanted, now))
    }

    /// Makes the attempt an epoch ahead of the suspends that wait.
    pub(super) fn put_ahead(&mut self, now: Duration) {
        let still_point = self.settings.patience.still_point;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.ahead = true;
        for wanted in self
            .requests
            .wanted
            .iter_mut()
            .filter(|wanted| wanted.suspend)
        {
            wanted.tried_ahead = true;
            let by = wanted.begins_by().unwrap_or(now + still_point);
            attempt.deadline = Some(attempt.deadline.map_or(by, |deadline| deadline.min(by)));
        }
    }

    /// Handles a suspend that comes during another checkpoint. Returns whether that one is its epoch ahead, or becomes it.
    pub(super) fn waits_behind_attempt(&self, wanted: &CheckpointRequest) -> bool {
        let Some(attempt) = &self.attempt else {
            return false;
        };
        let open = wanted.suspend && !attempt.is_given_up() && !attempt.suspend;
        let early = attempt.phase < Phase::Copy;
        open && attempt.phase < Phase::Commit
            && (attempt.ahead || early && self.copies_ahead(wanted, wanted.since))
    }

    /// Commands that want reports on the attempt under way.
    pub fn listeners(&self) -> Vec<u64> {
        let Some(attempt) = &self.attempt else {
            return vec![];
        };
        let waiting = self
            .requests
            .wanted
            .iter()
            .filter(|wanted| attempt.ahead && wanted.suspend);
        let waiting = waiting.filter_map(|wanted| wanted.watcher);
        attempt.watchers().into_iter().chain(waiting).collect()
    }

    /// Records the result of the epoch ahead in the suspends, whose turn has come.
    pub(super) fn end_ahead(&mut self, attempt: &Attempt, now: Duration) {
        if !attempt.ahead {
            return;
        }
        let ahead = (!attempt.is_given_up()).then(|| Ahead {
            epoch: attempt.epoch,
            seconds: attempt.times.until_committed().as_secs_f64(),
        });
        for wanted in self
            .requests
            .wanted
            .iter_mut()
            .filter(|wanted| wanted.suspend)
        {
            wanted.ahead = ahead;
            if wanted.timeout.is_none() && !wanted.patience.is_zero() {
                // Its patience begins only now.
                wanted.patience += now.saturating_sub(wanted.since.max(attempt.times.began));
            }
        }
    }
}
