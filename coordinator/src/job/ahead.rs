//! A suspend that copies ahead: first an epoch that is written while the application runs, then at once one of what has changed since.
//!
//! Both are ordinary attempts. While the first one is under way the suspend waits in the queue, so whatever becomes of it, the suspend's turn comes.

use std::time::Duration;

use stillpoint_protocol::agent::{Incremental, Written};
use stillpoint_protocol::command::Ahead;

use super::attempt::Attempt;
use super::phase::Phase;
use super::{Job, Precopy, Wanted};

/// What takes no longer to write is not worth an epoch of its own.
const WORTH_IT: Duration = Duration::from_millis(200);
/// Most that both epochs may take where the time until the end is not known: after a signal.
const BEFORE_THE_END: Duration = Duration::from_secs(20);

/// What the epochs of this launch tell of the next one.
#[derive(Debug, Default)]
pub(super) struct Experience {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    /// When the application stood still for it.
    at: Duration,
    /// How long writing took, and of how much memory.
    took: Duration,
    bytes: u64,
    /// Memory of the first epoch, which was written whole.
    whole: u64,
    /// How long after the epoch before it this one was; `None`: it is the first.
    after: Option<Duration>,
    /// The application ran on while it was written.
    ran_on: bool,
}

impl Experience {
    /// An epoch is written.
    pub fn gain(&mut self, attempt: &Attempt) {
        let (at, took) = attempt.writing();
        let bytes = attempt.written.iter().flatten();
        let bytes: u64 = bytes.map(|written: &Written| written.bytes).sum();
        let before = self.last.as_ref();
        self.last = Some(Last {
            at,
            took,
            bytes,
            whole: before.map_or(bytes, |last| last.whole.max(bytes)),
            after: before.map(|last| at.saturating_sub(last.at)),
            ran_on: attempt.ran_on,
        });
    }
}

impl Last {
    /// How long an epoch of now would take: as many bytes more or less as the time since is longer or shorter, as fast as the last one.
    fn estimate(&self, now: Duration) -> Duration {
        let since = now.saturating_sub(self.at).as_secs_f64();
        let bytes = match self.after {
            Some(after) if !after.is_zero() => {
                (self.bytes as f64 * since / after.as_secs_f64()).min(self.whole as f64)
            }
            _ => self.whole as f64,
        };
        self.took.mul_f64(bytes / self.bytes.max(1) as f64)
    }

    /// Whether a suspend is shorter after an epoch that takes so long, in which the application goes on to change memory.
    fn pays(&self, estimate: Duration, now: Duration) -> bool {
        self.ran_on && estimate > WORTH_IT && now.saturating_sub(self.at) > estimate * 2
    }
}

impl Wanted {
    /// When the suspend itself has to begin: what has a limit is not to lose more than half of it to the epoch before.
    fn begins_by(&self) -> Option<Duration> {
        self.timeout.map(|timeout| self.since + timeout / 2)
    }

    /// Whether it was the application's signal: how much time there is nobody knows.
    fn is_by_signal(&self) -> bool {
        self.watcher.is_none()
    }
}

impl Job {
    /// Whether an epoch ahead of this suspend makes its stop shorter, as far as one can tell.
    fn copies_ahead(&self, wanted: &Wanted, now: Duration) -> bool {
        let can = self.settings.incremental != Incremental::Off
            && self.settings.copies.is_some()
            && !self.stages();
        if !can || !wanted.suspend || wanted.tried_ahead || self.hindered.is_some() {
            return false;
        }
        let last = self.experience.last.as_ref();
        let estimate = last.map(|last| last.estimate(now));
        let in_time = |estimate: Duration| wanted.begins_by().is_none_or(|by| now + estimate < by);
        match (self.settings.precopy, last, estimate) {
            (Precopy::Off, ..) => false,
            (Precopy::On, ..) => in_time(Duration::ZERO),
            (Precopy::Auto, Some(last), Some(estimate)) => {
                let known = !wanted.is_by_signal() || estimate * 2 < BEFORE_THE_END;
                known && in_time(estimate) && last.pays(estimate, now)
            }
            // All is to be written, and how long that takes is not known.
            (Precopy::Auto, ..) => !wanted.is_by_signal() && in_time(Duration::ZERO),
        }
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
