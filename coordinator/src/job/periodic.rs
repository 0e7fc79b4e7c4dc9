//! Periodic checkpoints: when the next one is due, and what an automatic interval has learned.

use std::time::Duration;

use stillpoint_multilevel::interval::{Automatic, Chosen, Measured};
use stillpoint_protocol::Span;
use stillpoint_protocol::job_file::ChosenInterval;

use super::{CheckpointRequest, Job, Output, Settings};

/// The least time from the end of a checkpoint to the next one.
const LEAST: Duration = Duration::from_secs(1);

/// The interval of a job.
#[derive(Debug)]
pub(super) struct Periodic {
    /// The chooser, if the interval is automatic.
    automatic: Option<Automatic>,
    /// The time at which the next checkpoint is due; `None`: there are no periodic ones, or one is under way.
    next: Option<Duration>,
    /// The time since which the application computes.
    computes_since: Duration,
    /// The times of the stop that is staged: its begin, and its length.
    stop: Option<(Duration, Duration)>,
    /// Whether all ranks have been seen in MPI.
    started: bool,
}

impl Periodic {
    pub fn new(settings: &Settings, now: Duration) -> Periodic {
        let mut automatic = settings
            .mttf
            .map(|mttf| Automatic::new(mttf.time().as_secs_f64()));
        if let (Some(automatic), Some(costs)) = (&mut automatic, &settings.costs)
            && costs.lost_per_million.is_some()
        {
            automatic.measure(Measured {
                stopped: costs.stopped as f64 / 1e3,
                durable: costs.durable as f64 / 1e3,
            });
        }
        let mut periodic = Periodic {
            automatic,
            next: None,
            computes_since: now,
            stop: None,
            started: false,
        };
        periodic.next = periodic.interval(settings).map(|interval| now + interval);
        periodic
    }

    /// The time of computing between two stops.
    fn interval(&self, settings: &Settings) -> Option<Duration> {
        match &self.automatic {
            Some(automatic) => Some(Duration::from_secs_f64(automatic.chosen().seconds)),
            None => settings.interval.map(Span::time),
        }
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3).round() as u64
}

/// The choice as job.json keeps it.
fn kept(chosen: &Chosen) -> ChosenInterval {
    ChosenInterval {
        every: milliseconds(chosen.seconds),
        mttf: milliseconds(chosen.mttf),
        stopped: milliseconds(chosen.stopped),
        durable: milliseconds(chosen.durable),
        restart: milliseconds(chosen.restart),
        lost_per_million: chosen.lost.map(|lost| (lost * 1e6).round() as u64),
    }
}

impl Job {
    /// The time at which the next periodic checkpoint is due.
    pub(super) fn next_periodic(&self) -> Option<Duration> {
        self.periodic.next
    }

    /// Asks for a checkpoint that is due, and sets the time of the next one.
    pub(super) fn periodic_on_time(&mut self, now: Duration) {
        self.note_start(now);
        if self.periodic.next.is_some_and(|due| due <= now) && !self.is_suspended() {
            self.periodic.next = None;
            // Unless an epoch follows, the next one is a whole interval away.
            self.periodic.computes_since = now;
            if self.attempt.is_none()
                && self.requests.wanted.is_empty()
                && self.roster.gone().is_none()
            {
                let most = self.settings.patience.hindrance;
                let interval = self.periodic.interval(&self.settings);
                let patience = interval.map_or(most, |interval| interval.min(most));
                self.want(CheckpointRequest::of_the_job(false, patience, now));
            }
        }
        if self.attempt.is_none() && self.periodic.next.is_none() {
            self.set_next(now);
        }
    }

    /// An interval that was given counts from the end of a checkpoint. An automatic one counts from the end of the stop: what was computed since is part of it.
    fn set_next(&mut self, now: Duration) {
        let Some(interval) = self.periodic.interval(&self.settings) else {
            return;
        };
        self.periodic.next = Some(match &self.periodic.automatic {
            Some(_) => (self.periodic.computes_since + interval).max(now + LEAST),
            None => now + interval,
        });
    }

    /// Notes how long the launch took until every rank was there.
    fn note_start(&mut self, now: Duration) {
        if let Some(automatic) = &mut self.periodic.automatic
            && !self.periodic.started
            && self.roster.starting().next().is_none()
        {
            self.periodic.started = true;
            self.periodic.computes_since = now;
            automatic.started(now.saturating_sub(self.absence.began).as_secs_f64());
            self.fate.interval = Some(kept(&automatic.chosen()));
            self.outputs.push(Output::Record);
            if self.periodic.next.is_some() {
                self.set_next(now);
            }
        }
    }

    /// Notes an attempt that has ended without an epoch.
    pub(super) fn note_no_epoch(&mut self, now: Duration) {
        self.periodic.computes_since = now;
    }

    /// Notes the stop of an epoch that has come to its name: the application computes since its end. `durable`: the epoch is so already.
    pub(super) fn note_stop(&mut self, durable: bool, now: Duration) {
        let stop = self
            .attempt
            .as_ref()
            .and_then(|attempt| attempt.times.stop(now));
        let Some((since, length)) = stop else { return };
        self.periodic.computes_since = since + length;
        self.periodic.stop = Some((since, length));
        if durable {
            self.note_durable(now);
        }
    }

    /// Notes that the epoch of the last stop is durable, and chooses the interval anew.
    pub(super) fn note_durable(&mut self, now: Duration) {
        let (Some(automatic), Some((since, length))) =
            (&mut self.periodic.automatic, self.periodic.stop.take())
        else {
            return;
        };
        automatic.measure(Measured {
            stopped: length.as_secs_f64(),
            durable: now.saturating_sub(since).as_secs_f64(),
        });
        let chosen = automatic.chosen();
        self.fate.interval = Some(kept(&chosen));
        if self.periodic.next.is_some() {
            self.set_next(now);
        }
    }
}
