//! The reasons why a suspend that a signal asked for has not come about. The batch system may end the job, and this process, at any moment: so the job's user
//! is told at once on the job's stderr, and job.json keeps the reasons.

use std::time::Duration;

use stillpoint_refusals::{Refusal, in_words};

use super::{CheckpointRequest, Job, Output};

/// The least time between two lines about a suspend that is still being tried.
const PAUSE: Duration = Duration::from_secs(10);

impl CheckpointRequest {
    fn suspends_by_signal(&self) -> bool {
        self.suspend && self.is_by_signal()
    }
}

impl Job {
    /// Notes why these requests wait, if a suspend by signal is among them.
    pub(super) fn note_hindered<'a>(
        &mut self,
        mut waiting: impl Iterator<Item = &'a CheckpointRequest>,
        reasons: &[Refusal],
        now: Duration,
    ) {
        if waiting.any(CheckpointRequest::suspends_by_signal) {
            self.hindered_by(reasons, now);
        }
    }

    /// Notes what the attempt under way has waited for long, if it is a suspend by signal.
    pub(super) fn note_what_takes_long(&mut self, now: Duration) {
        let attempt = self.attempt.as_ref();
        let asked = attempt.filter(|attempt| {
            !attempt.is_given_up() && attempt.requests.iter().any(|w| w.suspends_by_signal())
        });
        let Some(attempt) = asked else { return };
        let reasons: Vec<Refusal> = attempt
            .late()
            .into_iter()
            .chain(self.takes_long(now))
            .collect();
        if !reasons.is_empty() {
            self.hindered_by(&reasons, now);
        }
    }

    fn hindered_by(&mut self, reasons: &[Refusal], now: Duration) {
        let text = in_words(reasons);
        let recently = self
            .requests
            .told_unsuspended
            .is_some_and(|told| now < told + PAUSE);
        if recently || self.fate.not_suspended.as_ref() == Some(&text) {
            return;
        }
        self.requests.told_unsuspended = Some(now);
        self.say(format!(
            "a signal asks for a suspend, and Stillpoint tries on: {text}"
        ));
        self.fate.not_suspended = Some(text);
        self.outputs.push(Output::Record);
    }

    /// Notes why these requests are given up, if a suspend by signal is among them.
    pub(super) fn note_given_up<'a>(
        &mut self,
        mut given_up: impl Iterator<Item = &'a CheckpointRequest>,
        reasons: &[Refusal],
    ) {
        if !given_up.any(CheckpointRequest::suspends_by_signal) {
            return;
        }
        let text = in_words(reasons);
        self.say(format!(
            "a signal asked for a suspend, which failed: {text}"
        ));
        self.fate.not_suspended = Some(text);
        self.outputs.push(Output::Record);
    }

    /// Forgets the reasons: a new suspend begins, or this one is committed.
    pub(super) fn forget_unsuspended(&mut self) {
        self.requests.told_unsuspended = None;
        self.fate.not_suspended = None;
    }
}
