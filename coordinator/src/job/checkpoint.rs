//! The checkpoint transaction: from a request through every phase to a committed epoch, or back to a job that runs on.
//!
//! Up to the commit, any error aborts the attempt: the ranks are released, the written files are removed, the older epochs stay as they are, and each
//! requester is told the reason. Once the commit has begun, the attempt cannot be aborted any more, because the epoch is complete on disk.

use std::time::Duration;

use stillpoint_clock::{drain, safe_state};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::{Begin, Dedup, Order, Progress, ToAgent, Written};
use stillpoint_protocol::command::ToCommand;
use stillpoint_protocol::job_file::JobState;
use stillpoint_refusals::{Refusal, refusal};

use super::attempt::{Attempt, Course, Pace};
use super::ending::AbortReason;
use super::phase::Phase;
use super::{Job, Output};

impl Job {
    pub(super) fn order_begin(&mut self, epoch: Epoch) {
        let directory = self.settings.directory.join(self.settings.mark.part(epoch));
        let dedup = match (self.settings.dedup, self.stages()) {
            (false, _) => vec![Dedup::Off; self.roster.size()],
            // Ranks cannot share chunks of images that are on their way to other nodes.
            (true, true) => vec![Dedup::Rank; self.roster.size()],
            (true, false) => self.roster.nodes(),
        };
        for (rank, dedup) in Rank::of_each(dedup) {
            let image = directory.join(stillpoint_image::image_name(rank));
            let order = Order::Begin(Begin {
                epoch,
                directory: directory.to_string_lossy().into_owned(),
                image: image.to_string_lossy().into_owned(),
                compress: self.settings.compress.clone(),
                incremental: self.settings.incremental,
                dedup,
            });
            let attempt = self.attempts;
            let message = ToAgent::Checkpoint { attempt, order };
            self.outputs.push(Output::Send { rank, message });
        }
    }

    pub(super) fn on_progress(
        &mut self,
        rank: Rank,
        number: u64,
        progress: Progress,
        now: Duration,
    ) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.number != number {
            return;
        }
        if attempt.is_given_up() && !matches!(progress, Progress::Released) {
            return;
        }
        attempt.heard(rank, &progress, now);
        match (attempt.phase, progress) {
            (Phase::Reach, Progress::Waits { what }) => {
                attempt.reports.waits(rank, what);
                let reasons = attempt.late();
                let watchers = self.listeners();
                if !reasons.is_empty() {
                    self.tell(watchers, ToCommand::Hindered { reasons });
                }
            }
            (Phase::Copy | Phase::Write, Progress::Waits { what }) => {
                attempt.reports.waits(rank, what)
            }
            (Phase::Reach, Progress::Asks { missing }) => self.on_late(missing),
            (Phase::Reach, Progress::Told(told)) => self.on_told(rank, told),
            (Phase::Flag | Phase::Reach, progress) => self.on_clock(rank, progress, now),
            (Phase::Check, Progress::GivenUp { sums }) => attempt.gave_up(rank, sums),
            (Phase::Check, Progress::CheckResult { refusals }) => {
                self.on_checked(rank, refusals, now);
            }
            // Refusals that were found while messages were pulled in.
            (Phase::Drain | Phase::Seal, Progress::CheckResult { refusals })
                if !refusals.is_empty() =>
            {
                attempt.reports.refuse(rank, refusals);
                let refusals = attempt.reports.refusals();
                self.abort(AbortReason::Refused(refusals), now);
            }
            // Refusals that were found while the image was written. Another try would find them again.
            (Phase::Plan | Phase::Copy | Phase::Write, Progress::CheckResult { refusals })
                if !refusals.is_empty() =>
            {
                attempt.reports.refuse(rank, refusals);
                let refusals = attempt.reports.refusals();
                self.abort(AbortReason::Hopeless(refusals), now);
            }
            (
                Phase::Drain,
                Progress::Counts {
                    round,
                    sent,
                    received,
                },
            ) => {
                let action = attempt.on_counts(rank, round, sent, received);
                self.on_drain(action, now);
            }
            (Phase::Seal, Progress::Sealed) => {
                attempt.reports.done(rank);
                self.write_if_ready(now);
            }
            (Phase::Copy, Progress::Apart) => self.on_apart(rank, None, now),
            (Phase::Copy, Progress::Written(written)) => self.on_apart(rank, Some(written), now),
            (Phase::Write, Progress::Written(written)) => self.on_written(rank, written, now),
            (Phase::Plan, Progress::Sized(sized)) => self.on_sized(rank, sized, now),
            (Phase::Write, Progress::Staged(written, moved)) => {
                self.on_staged_image(rank, written, &moved, now);
            }
            (phase, Progress::WriteFailed { reason })
                if (Phase::Check..Phase::Commit).contains(&phase) =>
            {
                let named = self.roster.named(rank);
                let reason = reason.reworded(|reason| format!("{named}: {reason}"));
                self.abort(AbortReason::Failed(reason), now);
            }
            (Phase::Release, Progress::Released) => self.on_released(rank, now),
            _ => {}
        }
    }

    /// Handles the messages of a rank on its way to the still point.
    fn on_clock(&mut self, Rank(rank): Rank, progress: Progress, now: Duration) {
        let event = match progress {
            Progress::Clocks { clocks } => safe_state::Event::Clocks { rank, clocks },
            Progress::Joined { ggid } => safe_state::Event::Joined { rank, ggid },
            Progress::Raise { ggid, seq } => safe_state::Event::Raise { rank, ggid, seq },
            Progress::State(state) => safe_state::Event::Report {
                rank,
                report: state.into(),
            },
            _ => return,
        };
        self.on_safe_state(event, now);
    }

    /// Handles a rank's answer to the check. The last answer decides: on to the drain, or back.
    fn on_checked(&mut self, rank: Rank, refusals: Vec<Refusal>, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.reports.refuse(rank, refusals);
        if !attempt.reports.done(rank) {
            return;
        }
        let refusals = attempt.reports.refusals();
        if !refusals.is_empty() {
            self.abort(AbortReason::Refused(refusals), now);
            return;
        }
        self.requests.hindered = None;
        self.enter(Phase::Drain, now);
        self.order(Order::Drain { round: 1 });
    }

    fn on_drain(&mut self, action: Option<drain::Action>, now: Duration) {
        match action {
            Some(drain::Action::Round { round }) => {
                if let Some(attempt) = &mut self.attempt {
                    attempt.delay(Order::Drain { round }, now);
                }
            }
            Some(drain::Action::Drained) => {
                self.enter(Phase::Seal, now);
                self.order(Order::Seal);
            }
            Some(drain::Action::Miscounted { sent, received }) => {
                let reason = refusal!(
                    Internal,
                    "the ranks received {received} messages but sent only {sent}: this is an error in Stillpoint, \
                     please report it"
                );
                self.abort(AbortReason::Failed(reason), now);
            }
            None => {}
        }
    }

    /// Records a written image. With the last one the epoch is ready to be committed.
    fn on_written(&mut self, rank: Rank, written: Written, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.reports.has_written(rank, written);
        attempt.reports.done(rank);
        self.commit_if_written(now);
    }

    pub(super) fn commit_if_written(&mut self, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.reports.all_written() {
            let images = attempt.reports.images();
            let (attempt, epoch) = (attempt.number, attempt.epoch);
            self.enter(Phase::Commit, now);
            self.outputs.push(Output::Commit {
                attempt,
                epoch,
                images,
            });
        }
    }

    fn on_safe_state(&mut self, event: safe_state::Event, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let number = attempt.number;
        for action in attempt.on_clocks(event) {
            match action {
                safe_state::Action::Targets {
                    rank,
                    version,
                    targets,
                } => {
                    if rank == 0 {
                        self.enter(Phase::Reach, now);
                    }
                    self.order_to([Rank(rank)], number, Order::Targets { version, targets });
                }
                safe_state::Action::Raised {
                    ranks,
                    version,
                    ggid,
                    target,
                } => {
                    let order = Order::Raised {
                        version,
                        ggid,
                        target,
                    };
                    self.order_to(ranks.into_iter().map(Rank), number, order);
                }
                safe_state::Action::Advance { ranks, version } => {
                    let ranks = ranks.into_iter().map(Rank);
                    self.order_to(ranks, number, Order::Advance { version });
                }
                safe_state::Action::Poll { poll, patience } => {
                    if let Some(attempt) = &mut self.attempt {
                        attempt.pace.delay_poll(poll, patience, now);
                    }
                }
                safe_state::Action::SafeStateFound => {
                    self.enter(Phase::Check, now);
                    self.order(Order::Check);
                }
            }
        }
    }

    /// Sends an order to some ranks. It overtakes a poll that was to go out.
    pub(super) fn order_to(
        &mut self,
        ranks: impl IntoIterator<Item = Rank>,
        attempt: u64,
        order: Order,
    ) {
        if let Some(attempt) = &mut self.attempt {
            attempt.pace = Pace::default();
        }
        self.order_beside(ranks, attempt, order);
    }

    /// Sends an order to some ranks without overtaking a poll.
    pub(super) fn order_beside(
        &mut self,
        ranks: impl IntoIterator<Item = Rank>,
        attempt: u64,
        order: Order,
    ) {
        for rank in ranks {
            let order = order.clone();
            let message = ToAgent::Checkpoint { attempt, order };
            self.outputs.push(Output::Send { rank, message });
        }
    }

    pub(super) fn on_prepared(&mut self, number: u64, result: Result<(), Refusal>, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.number != number || attempt.is_given_up() {
            return;
        }
        match result {
            Ok(()) => {
                attempt.course = Course::Open { prepared: true };
                self.write_if_ready(now);
            }
            Err(reason) => self.abort(AbortReason::Failed(reason), now),
        }
    }

    /// Orders the images to be written once every rank is sealed and the directory has been made.
    fn write_if_ready(&mut self, now: Duration) {
        let ready = |a: &Attempt| a.phase == Phase::Seal && a.is_prepared() && a.reports.all_done();
        if self.attempt.as_ref().is_some_and(ready) {
            if self.stages() {
                return self.begin_plan(now);
            }
            if self.writes_behind() {
                return self.begin_copy(now);
            }
            self.enter(Phase::Write, now);
            self.order(Order::Write);
        }
    }

    pub(super) fn on_committed(
        &mut self,
        number: u64,
        result: Result<String, Refusal>,
        now: Duration,
    ) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.number != number || attempt.phase != Phase::Commit {
            return;
        }
        let epoch = attempt.epoch;
        attempt.course = match result {
            Ok(directory) => Course::Committed {
                directory,
                traced: false,
            },
            Err(reason) => return self.abort(AbortReason::Failed(reason), now),
        };
        if attempt.staging.is_some() {
            return self.on_staged(epoch, now);
        }
        let (outcome, suspend) = (attempt.outcome(now), attempt.suspend);
        self.note_stop(true, now);
        self.next_epoch = epoch.next();
        self.fate.newest_epoch = Some(epoch);
        self.requests.failures = 0;
        self.record.committed(&outcome);
        self.log(format!("epoch {epoch}: committed"));
        self.happens(
            if suspend { "suspend" } else { "checkpoint" },
            Some(epoch),
            None,
        );
        if suspend {
            self.fate.state = JobState::Suspended;
            // An earlier error of a rank no longer matters: the job carries on from the epoch.
            self.fate.reason = None;
            self.fate.exit_status = None;
            self.forget_unsuspended();
            self.note_who_asked(epoch);
            self.outputs.push(Output::Record);
            if self.settings.requeue {
                // While its ranks are there the job has not failed, so batch jobs that depend on its success wait on.
                self.outputs.push(Output::Requeue);
            }
            self.enter(Phase::End, now);
            self.order(Order::Terminate);
        } else {
            let watchers = self.take_watchers();
            self.enter(Phase::Release, now);
            // The application does not wait for job.json. The requesters hear of the epoch when job.json names it.
            self.order(Order::Committed);
            self.outputs.push(Output::Record);
            self.tell(watchers, ToCommand::Committed(outcome));
        }
        self.skip_the_gone(now);
    }

    pub(super) fn enter(&mut self, phase: Phase, now: Duration) {
        if let Some(attempt) = &mut self.attempt {
            attempt.enter(phase, now);
        }
        self.tell_phase();
    }

    pub(super) fn tell_phase(&mut self) {
        let Some(attempt) = &self.attempt else {
            return;
        };
        if self.requests.hindered.is_some() && attempt.phase <= Phase::Check {
            // This is one more try; only its outcome is reported.
            return;
        }
        let message = ToCommand::Phase {
            epoch: attempt.epoch,
            phase: attempt.phase.name().to_owned(),
        };
        let watchers = self.listeners();
        self.tell(watchers, message);
    }

    /// Sends an order to every rank.
    pub(super) fn order(&mut self, order: Order) {
        if let Some(attempt) = &self.attempt {
            let attempt = attempt.number;
            self.outputs
                .push(Output::Broadcast(ToAgent::Checkpoint { attempt, order }));
        }
    }
}
