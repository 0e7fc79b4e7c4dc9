//! A request for a checkpoint, and the reasons that hinder it for the moment.
//!
//! A hindrance may pass, such as a file that is open for a moment, or a child that lives for a second. A request that is refused is therefore tried again
//! until its patience is over, with growing pauses between two tries. The job runs on meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_protocol::command::ToCommand;
use stillpoint_refusals::{Refusal, in_words, refusal};

use super::attempt::Attempt;
use super::ending::AbortReason;
use super::phase::Phase;
use super::rank_names::ranks_in_words;
use super::requests::Hindered;
use super::{CheckpointRequest, Job, Output};

/// The pause after the first try that was refused, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after a try that has failed. A failed try may have written much.
const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The least time for a try that has begun, so that its own answer counts.
const ONE_TRY: Duration = Duration::from_secs(1);

/// Whether a request cannot join the attempt any more: the application has run on since, or memory has been set apart to let it run on, and the request is a
/// suspend.
fn too_late_for_copies(attempt: &Attempt, wanted: &CheckpointRequest) -> bool {
    attempt.times.has_run_on() || wanted.suspend && attempt.phase == Phase::Copy
}

impl Job {
    /// Takes a request, which joins the attempt under way, or waits for its turn.
    pub(super) fn want(&mut self, wanted: CheckpointRequest) {
        let now = wanted.since;
        if self.is_suspended() || self.has_ended() {
            let reason = refusal!(JobEnds, "the job is ending");
            let ahead = None;
            return self.tell(wanted.watcher, ToCommand::Aborted { reason, ahead });
        }
        if self.waits_behind_attempt(&wanted) {
            self.requests.wanted.push_back(wanted);
            self.put_ahead(now);
            return self.begin_wanted(now);
        }
        // An epoch that is being staged does not serve a suspend, which needs a durable one.
        let too_late = wanted.suspend && self.stages();
        if let Some(attempt) = &mut self.attempt
            && !attempt.is_given_up()
            && attempt.phase < Phase::Commit
            && !(too_late && attempt.phase >= Phase::Plan)
            && !too_late_for_copies(attempt, &wanted)
        {
            attempt.suspend |= wanted.suspend;
            attempt.requests.push(wanted);
            return;
        }
        self.requests.wanted.push_back(wanted);
        if let Some(hindered) = &mut self.requests.hindered {
            // The new request has not waited for a try yet.
            hindered.again = now;
        }
        self.begin_wanted(now);
    }

    /// Begins an attempt for all requests that wait for one, if it can begin.
    pub(super) fn begin_wanted(&mut self, now: Duration) {
        self.refuse_impatient(now);
        if self.requests.wanted.is_empty() {
            if self.attempt.is_none() {
                self.requests.hindered = None;
            }
            return;
        }
        if let Some(attempt) = &self.attempt {
            let reason = refusal!(
                JobBusy,
                "the job is still busy with epoch {}",
                attempt.epoch
            );
            let late =
                |w: &CheckpointRequest| w.timeout.is_some_and(|timeout| w.since + timeout <= now);
            return self.give_up_wanted(&reason, late);
        }
        if let Some(epoch) = self.staging.flushing() {
            let reason = refusal!(
                JobBusy,
                "the ranks are still copying epoch {epoch} to the slow tier"
            );
            let late =
                |w: &CheckpointRequest| w.timeout.is_some_and(|timeout| w.since + timeout <= now);
            return self.give_up_wanted(&reason, late);
        }
        if let Some(gone) = self.roster.gone() {
            let reason = refusal!(
                RanksGone,
                "Stillpoint cannot checkpoint the whole job any more: {gone}"
            );
            return self.give_up_wanted(&reason, |_| true);
        }
        if let Some(never) = self
            .roster
            .twice()
            .cloned()
            .or_else(|| self.roster.unsplit())
        {
            let refused: Vec<CheckpointRequest> = self.requests.wanted.drain(..).collect();
            self.requests.hindered = None;
            self.log(format!("no checkpoint: {never}"));
            self.tell_refused(refused, std::slice::from_ref(&never));
            self.record.last_failure = Some(never);
            return;
        }
        let hindered = self
            .requests
            .hindered
            .as_ref()
            .map(|hindered| hindered.again);
        let replaced = match self.settings.recovers {
            None => self.roster.replaced(),
            // The processes that gather blocks become the ranks.
            Some(_) => None,
        };
        if let Some(for_now) = self.out_of_reach() {
            if hindered.is_none_or(|again| again <= now) {
                self.wait_for_all(vec![for_now], now);
            }
            return;
        }
        let starting: Vec<Rank> = match self.settings.recovers {
            None => self.roster.starting().collect(),
            Some(_) => self.roster.gathering().collect(),
        };
        if !starting.is_empty() {
            self.requests.hindered = None;
            let start = self.settings.patience.start;
            let who = ranks_in_words(&starting, self.roster.size());
            let reason = replaced.unwrap_or_else(|| {
                refusal!(
                    RanksMissing,
                    "the job is still starting: {who} not connected yet"
                )
            });
            return self.give_up_wanted(&reason, |w| w.since + w.timeout.unwrap_or(start) <= now);
        }
        if hindered.is_some_and(|again| now < again) {
            return;
        }
        self.attempts += 1;
        let ahead = self.begins_ahead(now);
        let (waiting, requests): (Vec<CheckpointRequest>, Vec<CheckpointRequest>) = self
            .requests
            .wanted
            .drain(..)
            .partition(|w| ahead && w.suspend);
        let suspend = requests.iter().any(|wanted| wanted.suspend);
        let ranks = self.roster.size();
        let mut attempt = Attempt::new(self.attempts, self.next_epoch, suspend, ranks, now);
        let still_point = self.settings.patience.still_point;
        attempt.deadline = requests
            .iter()
            .map(|wanted| {
                wanted
                    .timeout
                    .map_or(now + still_point, |t| wanted.since + t)
            })
            .chain(hindered.map(|_| now + ONE_TRY))
            .max();
        attempt.requests = requests;
        let (number, epoch) = (attempt.number, attempt.epoch);
        self.attempt = Some(attempt);
        self.requests.wanted = waiting.into();
        if ahead {
            self.put_ahead(now);
        }
        if hindered.is_none() {
            let what = match (suspend, ahead) {
                (true, _) => "suspend",
                (_, true) => "checkpoint before a suspend",
                _ => "checkpoint",
            };
            self.log(format!("epoch {epoch}: {what} begins"));
            self.happens(
                if suspend {
                    "suspend-begins"
                } else {
                    "checkpoint-begins"
                },
                Some(epoch),
                None,
            );
        }
        self.outputs.push(Output::Prepare {
            attempt: number,
            epoch,
        });
        self.order_begin(epoch);
        self.tell_phase();
    }

    fn give_up_wanted(&mut self, reason: &Refusal, which: impl Fn(&CheckpointRequest) -> bool) {
        let (given_up, kept): (VecDeque<CheckpointRequest>, VecDeque<CheckpointRequest>) =
            std::mem::take(&mut self.requests.wanted)
                .into_iter()
                .partition(|wanted| which(wanted));
        self.requests.wanted = kept;
        if given_up.is_empty() {
            return;
        }
        if self.requests.wanted.is_empty() {
            self.requests.hindered = None;
        }
        self.log(format!("no checkpoint: {reason}"));
        self.happens("checkpoint-failed", None, Some(reason.to_string()));
        self.record.last_failure = Some(reason.clone());
        self.note_given_up(given_up.iter(), std::slice::from_ref(reason));
        for wanted in given_up {
            self.tell(wanted.watcher, wanted.aborted(reason));
        }
    }

    /// Handles a try that was refused. Requests with patience left wait for the next one. Returns whether the refusal was an answer: some request got it, or
    /// none waits.
    pub(super) fn try_again_or_refuse(
        &mut self,
        requests: Vec<CheckpointRequest>,
        reasons: &[Refusal],
        now: Duration,
    ) -> bool {
        let (patient, refused): (Vec<CheckpointRequest>, Vec<CheckpointRequest>) = requests
            .into_iter()
            .partition(|wanted| now < wanted.tried_until());
        let waits = !patient.is_empty();
        if waits {
            self.wait_for_it_to_pass(&patient, reasons, now);
        }
        self.requests.wanted.extend(patient);
        let answered = !refused.is_empty() || !waits;
        self.tell_refused(refused, reasons);
        answered
    }

    /// Handles a try that has failed. A suspend by signal is tried again here: it has no caller that could do so before the batch system ends the job.
    pub(super) fn tell_failed(
        &mut self,
        requests: Vec<CheckpointRequest>,
        reason: Refusal,
        now: Duration,
    ) {
        let (signalled, told): (Vec<CheckpointRequest>, Vec<CheckpointRequest>) = requests
            .into_iter()
            .partition(|wanted| wanted.suspend && wanted.is_by_signal());
        if !signalled.is_empty() {
            self.try_again_or_refuse(signalled, std::slice::from_ref(&reason), now);
            self.requests.failures += 1;
            let pause =
                (FIRST_PAUSE * (1 << self.requests.failures.min(10))).min(LONGEST_AFTER_FAILURE);
            if let Some(hindered) = &mut self.requests.hindered {
                hindered.again = now + pause;
            }
        }
        for wanted in told {
            self.tell(wanted.watcher, wanted.aborted(&reason));
        }
    }

    /// Whether a suspend that a signal asked for waits for its next try.
    pub(super) fn waits_for_a_signal(&self) -> bool {
        let mut wanted = self.requests.wanted.iter();
        wanted.any(|wanted| wanted.suspend && wanted.is_by_signal())
    }

    /// Handles a reason that hinders any try. Requests with patience left wait for it to pass.
    fn wait_for_all(&mut self, reasons: Vec<Refusal>, now: Duration) {
        let wanted: Vec<CheckpointRequest> = self.requests.wanted.drain(..).collect();
        let attempts_fail = self.try_again_or_refuse(wanted, &reasons, now);
        if attempts_fail {
            self.record.last_failure = Some(Refusal::together(reasons));
        }
    }

    fn wait_for_it_to_pass(
        &mut self,
        patient: &[CheckpointRequest],
        reasons: &[Refusal],
        now: Duration,
    ) {
        let pause = match &self.requests.hindered {
            Some(before) if before.reasons == reasons => (before.pause * 2).min(LONGEST_PAUSE),
            _ => {
                let words = in_words(reasons);
                self.log(format!("waiting until this has passed: {words}"));
                FIRST_PAUSE
            }
        };
        self.note_hindered(patient.iter(), reasons, now);
        // The message also goes to requests that have come meanwhile.
        let message = ToCommand::Hindered {
            reasons: reasons.to_vec(),
        };
        self.tell(patient.iter().filter_map(|wanted| wanted.watcher), message);
        self.requests.hindered = Some(Hindered {
            reasons: reasons.to_vec(),
            pause,
            again: now + pause,
        });
    }

    /// Answers the requests whose patience is over during a hindrance.
    pub(super) fn refuse_impatient(&mut self, now: Duration) {
        let Some(hindered) = &self.requests.hindered else {
            return;
        };
        let reasons = hindered.reasons.clone();
        let (kept, refused): (Vec<CheckpointRequest>, Vec<CheckpointRequest>) =
            std::mem::take(&mut self.requests.wanted)
                .into_iter()
                .partition(|wanted| now < wanted.tried_until());
        self.requests.wanted = kept.into();
        if !refused.is_empty() {
            self.log(format!("no checkpoint: {}", in_words(&reasons)));
            self.happens("checkpoint-failed", None, Some(in_words(&reasons)));
            self.tell_refused(refused, &reasons);
            let reason = Refusal::together(reasons);
            self.record.given_up(reason);
        }
    }

    /// Gives the attempt up if two processes are one rank, since no epoch can hold both.
    pub(super) fn refuse_if_twice(&mut self, now: Duration) {
        let twice = self.roster.twice().cloned();
        if let Some(reason) = twice.filter(|_| self.may_abort()) {
            self.abort(AbortReason::Refused(vec![reason]), now);
        }
    }

    pub(super) fn tell_refused(&mut self, refused: Vec<CheckpointRequest>, reasons: &[Refusal]) {
        self.note_given_up(refused.iter(), reasons);
        let reasons = reasons.to_vec();
        let watchers = refused.into_iter().filter_map(|wanted| wanted.watcher);
        self.tell(watchers.collect::<Vec<_>>(), ToCommand::Refused { reasons });
    }

    /// The next time at which a waiting request has to be tried again or refused.
    pub(super) fn hindered_deadline(&self) -> Option<Duration> {
        let hindered = self.requests.hindered.as_ref()?;
        let over = self
            .requests
            .wanted
            .iter()
            .map(CheckpointRequest::tried_until);
        match self.attempt {
            None if self.requests.wanted.is_empty() => None,
            None => over.chain([hindered.again]).min(),
            Some(_) => over.min(),
        }
    }

    /// The reasons that a request waits for, for `stillpoint status`.
    pub(super) fn waits_for(&self, now: Duration) -> Vec<Refusal> {
        let reasons = self
            .requests
            .hindered
            .iter()
            .flat_map(|hindered| &hindered.reasons);
        let late = self.attempt.iter().flat_map(|attempt| attempt.late());
        let known = reasons.cloned().chain(late);
        known.chain(self.takes_long(now)).collect()
    }
}
