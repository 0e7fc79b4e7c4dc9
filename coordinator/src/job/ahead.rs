//! A suspend that copies ahead: first an epoch that is written while the application runs, then at once one of what has changed since.
//!
//! Both are ordinary attempts. While the first one is under way the suspend waits in the queue, so whatever becomes of it, the suspend's turn comes.

use std::time::Duration;

use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::command::Ahead;

use super::attempt::Attempt;
use super::phase::Phase;
use super::{Job, Wanted};

impl Wanted {
    /// When the suspend itself has to begin: what has a limit is not to lose more than half of it to the epoch before.
    fn begins_by(&self) -> Option<Duration> {
        self.timeout.map(|timeout| self.since + timeout / 2)
    }

    /// Whether it was the application's signal: how much time there is nobody knows.
    pub(super) fn is_by_signal(&self) -> bool {
        self.watcher.is_none()
    }
}

impl Job {
    /// Whether an epoch ahead of this suspend is wanted, and there is time for it. It makes the stop shorter, and the time until the job has ended longer.
    fn copies_ahead(&self, wanted: &Wanted, now: Duration) -> bool {
        let can = self.settings.precopy
            && self.settings.incremental != Incremental::Off
            && self.settings.copies.is_some()
            && !self.stages();
        can && wanted.suspend
            && !wanted.tried_ahead
            && self.hindered.is_none()
            && wanted.begins_by().is_none_or(|by| now < by)
    }

    /// Whether the attempt that is to begin is an epoch ahead of the suspends that are wanted: of each of them.
    pub(super) fn begins_ahead(&self, now: Duration) -> bool {
        let mut suspends = self
            .wanted
            .iter()
            .filter(|wanted| wanted.suspend)
            .peekable();
        suspends.peek().is_some() && suspends.all(|wanted| self.copies_ahead(wanted, now))
    }

    /// Makes the attempt an epoch ahead of the suspends that are wanted.
    pub(super) fn put_ahead(&mut self, now: Duration) {
        let still_point = self.settings.patience.still_point;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.ahead = true;
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.suspend) {
            wanted.tried_ahead = true;
            let by = wanted.begins_by().unwrap_or(now + still_point);
            attempt.deadline = Some(attempt.deadline.map_or(by, |deadline| deadline.min(by)));
        }
    }

    /// A suspend comes while another checkpoint is under way. True where that one is its epoch ahead, or becomes it.
    pub(super) fn waits_behind_attempt(&self, wanted: &Wanted) -> bool {
        let Some(attempt) = &self.attempt else {
            return false;
        };
        let open = wanted.suspend && !attempt.aborted && !attempt.suspend;
        let early = attempt.phase < Phase::Copy;
        open && attempt.phase < Phase::Commit
            && (attempt.ahead || early && self.copies_ahead(wanted, wanted.since))
    }

    /// Commands that want to hear of the attempt under way.
    pub(super) fn listeners(&self) -> Vec<u64> {
        let Some(attempt) = &self.attempt else {
            return vec![];
        };
        let waiting = self
            .wanted
            .iter()
            .filter(|wanted| attempt.ahead && wanted.suspend);
        let waiting = waiting.filter_map(|wanted| wanted.watcher);
        attempt.watchers().into_iter().chain(waiting).collect()
    }

    /// The epoch ahead is over: the suspends' turn has come.
    pub(super) fn end_ahead(&mut self, attempt: &Attempt, now: Duration) {
        if !attempt.ahead {
            return;
        }
        let ahead = (!attempt.aborted).then(|| Ahead {
            epoch: attempt.epoch,
            seconds: attempt.until_committed().as_secs_f64(),
        });
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.suspend) {
            wanted.ahead = ahead;
            if wanted.timeout.is_none() && !wanted.patience.is_zero() {
                // It has had nobody to be patient with.
                wanted.patience += now.saturating_sub(wanted.since.max(attempt.began()));
            }
        }
    }
}
