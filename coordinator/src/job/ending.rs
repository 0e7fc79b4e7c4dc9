//! The end of an attempt without a commit: refused, failed, too late, deserted. In any case the ranks are then released.

use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_protocol::agent::Order;
use stillpoint_protocol::command::ToCommand;
use stillpoint_refusals::{Refusal, refusal};

use super::attempt::{Attempt, Course};
use super::member::Life;
use super::phase::Phase;
use super::{Job, Output};

/// The pause of a poll that is due while ranks are asked about operations that they are late for.
const ASKING: Duration = Duration::from_millis(50);

/// The reason why there will be no epoch.
pub(super) enum AbortReason {
    Refused(Vec<Refusal>),
    /// Another try would give the same reasons.
    Hopeless(Vec<Refusal>),
    Failed(Refusal),
}

impl Job {
    /// Handles a rank's message that it cannot take part.
    pub(super) fn on_refuse(&mut self, rank: Rank, number: u64, reason: Refusal, now: Duration) {
        let current = self.attempt.as_ref().map(|attempt| attempt.number);
        if current == Some(number) && self.may_abort() {
            let named = self.roster.named(rank);
            let reason = reason.reworded(|reason| format!("{named}: {reason}"));
            self.abort(AbortReason::Refused(vec![reason]), now);
        }
    }

    /// Handles a rank that has ended or died.
    pub(super) fn on_rank_gone(&mut self, rank: Rank, now: Duration) {
        self.flush_lost(rank);
        if self.may_abort() {
            let phase = self.attempt.as_ref().map_or("", |a| a.phase.name());
            let why = match self.roster.gone() {
                Some(gone) => AbortReason::Failed(refusal!(RanksGone, "{gone} (in phase {phase})")),
                // The job waits for the other program, like for one that has not begun MPI.
                None => {
                    let became = refusal!(
                        RanksMissing,
                        "{} was replaced by another program (exec)",
                        self.roster.named(rank)
                    );
                    AbortReason::Refused(vec![became])
                }
            };
            self.abort(why, now);
        }
        self.on_released(rank, now);
    }

    /// Records a released rank. After the last one the attempt ends.
    pub(super) fn on_released(&mut self, rank: Rank, now: Duration) {
        if let Some(attempt) = &mut self.attempt
            && attempt.phase == Phase::Release
            && attempt.reports.done(rank)
        {
            self.end_attempt(now);
        }
    }

    pub(super) fn may_abort(&self) -> bool {
        let may = |a: &Attempt| !a.is_given_up() && a.phase < Phase::Commit;
        self.attempt.as_ref().is_some_and(may)
    }

    /// Gives the attempt up: there will be no epoch, and the job runs on.
    pub(super) fn abort(&mut self, why: AbortReason, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.course = Course::GivenUp;
        let epoch = attempt.epoch;
        if attempt.phase >= Phase::Copy {
            // A rank that waits for the disk removes its image later, so this name is not used again.
            self.next_epoch = self.next_epoch.max(epoch.next());
        }
        let requests = std::mem::take(&mut attempt.requests);
        let reason = match &why {
            AbortReason::Refused(reasons) | AbortReason::Hopeless(reasons) => {
                Refusal::together(reasons.clone())
            }
            AbortReason::Failed(reason) => reason.clone(),
        };
        let answered = match why {
            // Requests that have joined it wait for the suspend with the others.
            _ if attempt.ahead => {
                self.requests.wanted.extend(requests);
                true
            }
            AbortReason::Refused(reasons) => self.try_again_or_refuse(requests, &reasons, now),
            AbortReason::Hopeless(reasons) => {
                self.tell_refused(requests, &reasons);
                true
            }
            AbortReason::Failed(reason) => {
                self.tell_failed(requests, reason, now);
                true
            }
        };
        if answered {
            self.log(format!("epoch {epoch}: given up: {reason}"));
            self.happens("checkpoint-failed", Some(epoch), Some(reason.to_string()));
            self.record.given_up(reason.clone());
        }
        self.enter(Phase::Release, now);
        let again = self.waits_for_a_signal();
        let reason = reason.to_string();
        self.order(Order::Abort { reason, again });
        self.skip_the_gone(now);
    }

    /// Counts ranks that have gone as released, since they will not answer.
    pub(super) fn skip_the_gone(&mut self, now: Duration) {
        let gone: Vec<Rank> = self
            .roster
            .iter()
            .filter(|(_, member)| !member.connected || matches!(member.life, Life::Ended(_)))
            .map(|(rank, _)| rank)
            .collect();
        for rank in gone {
            self.on_rank_gone(rank, now);
        }
    }

    pub(super) fn attempt_on_time(&mut self, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if let Some(order) = attempt.pace.take_due(now) {
            let asks = attempt.absent().is_some_and(|absent| absent.is_asking());
            match order {
                // Two polls without a change would let ranks on. But the question under way may be what moves them.
                Order::Poll { .. } if asks => attempt.pace.delay_by(ASKING, order, now),
                order => self.order(order),
            }
        }
        let Some(attempt) = &self.attempt else {
            return;
        };
        if self.attempt_deadline(attempt).is_none_or(|due| now < due) {
            return;
        }
        let waits_for = attempt.waits_for();
        match attempt.phase {
            Phase::Release => {
                self.log(format!("{waits_for} to the order to run on"));
                self.end_attempt(now);
            }
            Phase::End => {
                self.log("the ranks have not ended yet".to_owned());
                self.end_attempt(now);
            }
            phase => {
                let seconds = now.saturating_sub(attempt.times.began).as_secs_f64();
                let reason = refusal!(
                    TooLate,
                    "given up after {seconds:.0} s in phase {phase}: {waits_for}"
                );
                self.abort(AbortReason::Failed(reason), now);
            }
        }
    }

    /// The time at which the phase under way has taken too long.
    pub(super) fn attempt_deadline(&self, attempt: &Attempt) -> Option<Duration> {
        let patience = &self.settings.patience;
        match attempt.phase {
            Phase::Commit => None,
            Phase::Release => Some(attempt.times.phase_began + patience.release),
            Phase::End => Some(attempt.times.phase_began + patience.end),
            _ => attempt.deadline,
        }
    }

    /// Ends the attempt under way after every rank has gone, since there is no rank left to release.
    pub(super) fn end_attempt_of_ended_job(&mut self, now: Duration) {
        if self.attempt.is_some() {
            self.end_attempt(now);
        }
    }

    pub(super) fn end_attempt(&mut self, now: Duration) {
        let Some(mut attempt) = self.attempt.take() else {
            return;
        };
        self.trace(&mut attempt, now);
        if attempt.is_given_up() {
            let epoch = attempt.epoch;
            self.outputs.push(Output::Discard { epoch });
            self.note_no_epoch(now);
        }
        self.end_ahead(&attempt, now);
        if self.is_suspended() {
            let outcome = attempt.outcome(now);
            self.tell(attempt.watchers(), ToCommand::Committed(outcome));
        }
    }

    pub(super) fn take_watchers(&mut self) -> Vec<u64> {
        self.attempt
            .as_mut()
            .map(|attempt| {
                let watchers = attempt.watchers();
                attempt.requests.clear();
                watchers
            })
            .unwrap_or_default()
    }
}
