//! The times of an attempt: its phases, and how long the application stood still.

use std::time::Duration;

use crate::job::phase::Phase;

/// A phase that is over.
#[derive(Debug)]
pub struct PastPhase {
    pub phase: Phase,
    pub began: Duration,
    pub ended: Duration,
    /// By rank: when it had done its part, if it reports that.
    pub ranks: Vec<Option<Duration>>,
}

impl PastPhase {
    pub fn length(&self) -> Duration {
        self.ended.saturating_sub(self.began)
    }
}

/// The application, while a checkpoint is made of it.
#[derive(Clone, Copy, Debug)]
enum Application {
    /// It has not come to the still point.
    Runs,
    /// Every rank stands still.
    Stands { since: Duration },
    /// It runs again, or has ended, after it stood still for this long.
    RunsOn { since: Duration, stood: Duration },
}

/// The times of an attempt.
#[derive(Debug)]
pub struct Times {
    pub began: Duration,
    /// The time at which the phase under way began.
    pub phase_began: Duration,
    /// The phases before it.
    pub past: Vec<PastPhase>,
    application: Application,
}

impl Times {
    pub fn new(now: Duration) -> Times {
        Times {
            began: now,
            phase_began: now,
            past: vec![],
            application: Application::Runs,
        }
    }

    /// Goes on from a phase to the next one.
    pub fn enter(&mut self, next: Phase, ended: PastPhase, now: Duration) {
        match next {
            Phase::Check => self.application = Application::Stands { since: now },
            Phase::Release | Phase::End => self.runs_on(now),
            _ => {}
        }
        self.past.push(ended);
        self.phase_began = now;
    }

    /// The application runs again, or has ended. If this is called twice, the first call counts.
    pub fn runs_on(&mut self, now: Duration) {
        if let Application::Stands { since } = self.application {
            let stood = now.saturating_sub(since);
            self.application = Application::RunsOn { since, stood };
        }
    }

    /// Whether the application has run on after the still point.
    pub fn has_run_on(&self) -> bool {
        matches!(self.application, Application::RunsOn { .. })
    }

    /// The time at which every rank stood still, and for how long, up to now if it still lasts.
    pub fn stop(&self, now: Duration) -> Option<(Duration, Duration)> {
        match self.application {
            Application::Runs => None,
            Application::Stands { since } => Some((since, now.saturating_sub(since))),
            Application::RunsOn { since, stood } => Some((since, stood)),
        }
    }

    /// The time from the beginning to the commit, once it is over.
    pub fn until_committed(&self) -> Duration {
        let past = self.past.iter();
        let past = past.filter(|past| past.phase <= Phase::Commit);
        past.map(PastPhase::length).sum()
    }
}
