//! A request for a checkpoint, and what hinders it for the moment.
//!
//! A hindrance may pass: a file that is open for a moment, a child that lives for a second. A request that is refused is
//! therefore tried again until its patience is over, with growing pauses between two tries. The job runs on meanwhile.

use std::time::Duration;

use stillpoint_protocol::command::ToCommand;

use super::{Job, Wanted};

/// The pause after the first try that was refused, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// What a try that has begun is given at the least, so that its own answer counts.
pub(super) const ONE_TRY: Duration = Duration::from_secs(1);

impl Wanted {
    /// One that nobody waits for: a periodic checkpoint, a suspend by a signal.
    pub(super) fn of_the_job(suspend: bool, patience: Duration, now: Duration) -> Wanted {
        Wanted {
            watcher: None,
            suspend,
            timeout: None,
            patience,
            since: now,
        }
    }

    /// Until when it is tried again after a refusal.
    fn tried_until(&self) -> Duration {
        self.since + self.patience
    }
}

/// What the last try was refused for.
#[derive(Debug)]
pub(super) struct Hindered {
    reasons: Vec<String>,
    pause: Duration,
    /// When the next try begins.
    pub(super) again: Duration,
}

impl Job {
    /// A try was refused: whoever has patience left waits for the next one. True when somebody was given the refusal as
    /// the answer, or nobody waits.
    pub(super) fn try_again_or_refuse(
        &mut self,
        requests: Vec<Wanted>,
        reasons: &[String],
        now: Duration,
    ) -> bool {
        let (patient, refused): (Vec<Wanted>, Vec<Wanted>) = requests
            .into_iter()
            .partition(|wanted| now < wanted.tried_until());
        let waits = !patient.is_empty();
        if waits {
            self.wait_for_it_to_pass(&patient, reasons, now);
        }
        self.wanted.extend(patient);
        let answered = !refused.is_empty() || !waits;
        self.tell_refused(refused, reasons);
        answered
    }

    fn wait_for_it_to_pass(&mut self, patient: &[Wanted], reasons: &[String], now: Duration) {
        let pause = match &self.hindered {
            Some(before) if before.reasons == reasons => (before.pause * 2).min(LONGEST_PAUSE),
            _ => {
                self.log(format!(
                    "waits until this has passed: {}",
                    reasons.join("; ")
                ));
                FIRST_PAUSE
            }
        };
        // Also to those who have come meanwhile.
        let message = ToCommand::Hindered {
            reasons: reasons.to_vec(),
        };
        self.tell(patient.iter().filter_map(|wanted| wanted.watcher), message);
        self.hindered = Some(Hindered {
            reasons: reasons.to_vec(),
            pause,
            again: now + pause,
        });
    }

    /// Answers those whose patience is over while something hinders.
    pub(super) fn refuse_impatient(&mut self, now: Duration) {
        let Some(hindered) = &self.hindered else {
            return;
        };
        let reasons = hindered.reasons.clone();
        let (kept, refused): (Vec<Wanted>, Vec<Wanted>) = std::mem::take(&mut self.wanted)
            .into_iter()
            .partition(|wanted| now < wanted.tried_until());
        self.wanted = kept.into();
        if !refused.is_empty() {
            self.log(format!("no checkpoint: {}", reasons.join("; ")));
            self.last_failure = Some(reasons.join("; "));
            self.aborted += 1;
            self.tell_refused(refused, &reasons);
        }
    }

    fn tell_refused(&mut self, refused: Vec<Wanted>, reasons: &[String]) {
        let reasons = reasons.to_vec();
        let watchers = refused.into_iter().filter_map(|wanted| wanted.watcher);
        self.tell(watchers.collect::<Vec<_>>(), ToCommand::Refused { reasons });
    }

    /// When something is due because requests wait for a hindrance to pass.
    pub(super) fn hindered_deadline(&self) -> Option<Duration> {
        let hindered = self.hindered.as_ref()?;
        let over = self.wanted.iter().map(Wanted::tried_until);
        match self.attempt {
            None if self.wanted.is_empty() => None,
            None => over.chain([hindered.again]).min(),
            Some(_) => over.min(),
        }
    }

    /// What a request waits for, for `stillpoint status`.
    pub(super) fn waits_for(&self) -> Vec<String> {
        let reasons = self.hindered.iter().flat_map(|hindered| &hindered.reasons);
        reasons.cloned().collect()
    }
}
