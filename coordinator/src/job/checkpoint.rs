//! The checkpoint transaction: from a request through every phase to a committed epoch, or back to a
//! job that runs on.
//!
//! Up to the commit, anything that goes wrong aborts the attempt: the ranks are released, what was
//! written is removed, the older epochs stay as they are, and whoever asked is told why. Once the commit
//! has begun nothing aborts it any more, because the epoch is complete on disk.

use std::collections::VecDeque;
use std::time::Duration;

use stillpoint_clock::{drain, safe_state};
use stillpoint_protocol::agent::{Begin, Order, Progress, ToAgent};
use stillpoint_protocol::command::ToCommand;
use stillpoint_protocol::job_file::JobState;

use super::attempt::Attempt;
use super::ending::Why;
use super::phase::Phase;
use super::request::ONE_TRY;
use super::roster::ranks_in_words;
use super::{Job, Output, Wanted};

impl Job {
    /// Somebody wants a checkpoint: joins the attempt under way, or waits for its turn.
    pub(super) fn want(&mut self, wanted: Wanted) {
        let now = wanted.since;
        if self.suspended || self.ended {
            let reason = "the job is ending".to_owned();
            return self.tell(wanted.watcher, ToCommand::Aborted { reason });
        }
        // An epoch that is being staged is no good for a suspend, which wants a durable one.
        let too_late = wanted.suspend && self.stages();
        if let Some(attempt) = &mut self.attempt
            && !attempt.aborted
            && attempt.phase < Phase::Commit
            && !(too_late && attempt.phase >= Phase::Plan)
        {
            attempt.suspend |= wanted.suspend;
            attempt.requests.push(wanted);
            return;
        }
        self.wanted.push_back(wanted);
        if let Some(hindered) = &mut self.hindered {
            // It has waited for nothing yet.
            hindered.again = now;
        }
        self.begin_wanted(now);
    }

    /// Begins an attempt for everybody who waits for one, if it can begin.
    pub(super) fn begin_wanted(&mut self, now: Duration) {
        self.refuse_impatient(now);
        if self.wanted.is_empty() {
            if self.attempt.is_none() {
                self.hindered = None;
            }
            return;
        }
        if let Some(attempt) = &self.attempt {
            let reason = format!("the job is still busy with epoch {}", attempt.epoch);
            let late = |w: &Wanted| w.timeout.is_some_and(|timeout| w.since + timeout <= now);
            return self.give_up_wanted(&reason, late);
        }
        if let Some(epoch) = self.staging.flushing() {
            let reason = format!("epoch {epoch} is still on its way to the slow tier");
            let late = |w: &Wanted| w.timeout.is_some_and(|timeout| w.since + timeout <= now);
            return self.give_up_wanted(&reason, late);
        }
        if let Some(gone) = self.roster.gone() {
            let reason = format!("there can be no checkpoint of the whole job any more: {gone}");
            return self.give_up_wanted(&reason, |_| true);
        }
        let starting: Vec<u32> = self.roster.starting().collect();
        if !starting.is_empty() {
            let start = self.settings.patience.start;
            let who = ranks_in_words(&starting, self.roster.size());
            let reason = format!("the job is still starting: {who} not connected yet");
            return self.give_up_wanted(&reason, |w| w.since + w.timeout.unwrap_or(start) <= now);
        }
        let hindered = self.hindered.as_ref().map(|hindered| hindered.again);
        if hindered.is_some_and(|again| now < again) {
            return;
        }
        self.attempts += 1;
        let suspend = self.wanted.iter().any(|wanted| wanted.suspend);
        let ranks = self.roster.size();
        let mut attempt = Attempt::new(self.attempts, self.next_epoch, suspend, ranks, now);
        let still_point = self.settings.patience.still_point;
        attempt.deadline = self
            .wanted
            .iter()
            .map(|wanted| {
                wanted
                    .timeout
                    .map_or(now + still_point, |t| wanted.since + t)
            })
            .chain(hindered.map(|_| now + ONE_TRY))
            .max();
        attempt.requests = self.wanted.drain(..).collect();
        let epoch = attempt.epoch;
        self.attempt = Some(attempt);
        if hindered.is_none() {
            let what = if suspend { "suspend" } else { "checkpoint" };
            self.log(format!("epoch {epoch}: {what}"));
        }
        self.outputs.push(Output::Prepare { epoch });
        self.order_begin(epoch);
        self.tell_phase();
    }

    fn order_begin(&mut self, epoch: u64) {
        let directory = self.settings.directory.join(self.settings.mark.part(epoch));
        for rank in 0..self.settings.ranks {
            let image = directory.join(stillpoint_image::image_name(rank));
            let order = Order::Begin(Begin {
                epoch,
                directory: directory.to_string_lossy().into_owned(),
                image: image.to_string_lossy().into_owned(),
                compress: self.settings.compress.clone(),
            });
            let attempt = self.attempts;
            let message = ToAgent::Checkpoint { attempt, order };
            self.outputs.push(Output::Send { rank, message });
        }
    }

    fn give_up_wanted(&mut self, reason: &str, which: impl Fn(&Wanted) -> bool) {
        let (given_up, kept): (VecDeque<Wanted>, VecDeque<Wanted>) =
            std::mem::take(&mut self.wanted)
                .into_iter()
                .partition(|wanted| which(wanted));
        self.wanted = kept;
        if given_up.is_empty() {
            return;
        }
        if self.wanted.is_empty() {
            self.hindered = None;
        }
        self.log(format!("no checkpoint: {reason}"));
        self.last_failure = Some(reason.to_owned());
        for wanted in given_up {
            let reason = reason.to_owned();
            self.tell(wanted.watcher, ToCommand::Aborted { reason });
        }
    }

    pub(super) fn on_progress(
        &mut self,
        rank: u32,
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
        if attempt.aborted && !matches!(progress, Progress::Released) {
            return;
        }
        match (attempt.phase, progress) {
            (Phase::Flag | Phase::Reach, Progress::Clocks { clocks }) => {
                self.on_safe_state(safe_state::Event::Clocks { rank, clocks }, now);
            }
            (Phase::Flag | Phase::Reach, Progress::Joined { ggid }) => {
                self.on_safe_state(safe_state::Event::Joined { rank, ggid }, now);
            }
            (Phase::Flag | Phase::Reach, Progress::Raise { ggid, seq }) => {
                self.on_safe_state(safe_state::Event::Raise { rank, ggid, seq }, now);
            }
            (Phase::Flag | Phase::Reach, Progress::State(state)) => {
                let report = state.into();
                self.on_safe_state(safe_state::Event::Report { rank, report }, now);
            }
            (Phase::Check, Progress::CheckResult { refusals }) => {
                attempt.refuse(rank, refusals);
                if attempt.done(rank) {
                    let refusals = attempt.refusals();
                    if refusals.is_empty() {
                        self.hindered = None;
                        self.enter(Phase::Drain, now);
                        self.order(Order::Drain { round: 1 });
                    } else {
                        self.abort(Why::Refused(refusals), now);
                    }
                }
            }
            (
                Phase::Drain,
                Progress::Counts {
                    round,
                    sent,
                    received,
                },
            ) => match attempt.drain.counts(rank as usize, round, sent, received) {
                Some(drain::Action::Round { round }) => {
                    attempt.delay(Order::Drain { round }, now);
                }
                Some(drain::Action::Drained) => {
                    self.enter(Phase::Seal, now);
                    self.order(Order::Seal);
                }
                Some(drain::Action::Miscounted { sent, received }) => {
                    let reason = format!(
                        "{received} messages were received but only {sent} sent: \
                         this is an error in Stillpoint, please report it"
                    );
                    self.abort(Why::Failed(reason), now);
                }
                None => {}
            },
            (Phase::Seal, Progress::Sealed) => {
                attempt.done(rank);
                self.write_if_ready(now);
            }
            (Phase::Write, Progress::Written(written)) => {
                if let Some(slot) = attempt.written.get_mut(rank as usize) {
                    *slot = Some(written);
                }
                if attempt.done(rank) {
                    let images = attempt.written.iter().flatten().cloned().collect();
                    let epoch = attempt.epoch;
                    self.enter(Phase::Commit, now);
                    self.outputs.push(Output::Commit { epoch, images });
                }
            }
            (Phase::Plan, Progress::Sized(sized)) => self.on_sized(rank, sized, now),
            (Phase::Write, Progress::Staged(written, moved)) => {
                self.on_staged_image(rank, written, &moved, now);
            }
            (phase, Progress::WriteFailed { reason })
                if (Phase::Check..Phase::Commit).contains(&phase) =>
            {
                let reason = format!("{}: {reason}", self.roster.named(rank));
                self.abort(Why::Failed(reason), now);
            }
            (Phase::Release, Progress::Released) => self.on_released(rank, now),
            _ => {}
        }
    }

    fn on_safe_state(&mut self, event: safe_state::Event, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let number = attempt.number;
        for action in attempt.safe.on(event) {
            match action {
                safe_state::Action::Targets {
                    rank,
                    version,
                    targets,
                } => {
                    if rank == 0 {
                        self.enter(Phase::Reach, now);
                    }
                    self.order_to([rank], number, Order::Targets { version, targets });
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
                    self.order_to(ranks, number, order);
                }
                safe_state::Action::Advance { ranks, version } => {
                    self.order_to(ranks, number, Order::Advance { version });
                }
                safe_state::Action::Poll { poll, patience } => {
                    if let Some(attempt) = &mut self.attempt {
                        attempt.delay_poll(poll, patience, now);
                    }
                }
                safe_state::Action::SafeStateFound => {
                    self.enter(Phase::Check, now);
                    self.order(Order::Check);
                }
            }
        }
    }

    /// To some ranks; a poll that was to go out has been overtaken by it.
    fn order_to(&mut self, ranks: impl IntoIterator<Item = u32>, attempt: u64, order: Order) {
        if let Some(attempt) = &mut self.attempt {
            attempt.moved();
        }
        for rank in ranks {
            let order = order.clone();
            let message = ToAgent::Checkpoint { attempt, order };
            self.outputs.push(Output::Send { rank, message });
        }
    }

    pub(super) fn on_prepared(&mut self, epoch: u64, result: Result<(), String>, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.epoch != epoch || attempt.aborted {
            return;
        }
        match result {
            Ok(()) => {
                attempt.prepared = true;
                self.write_if_ready(now);
            }
            Err(reason) => self.abort(Why::Failed(reason), now),
        }
    }

    /// Images are written when every rank is sealed and the directory is there.
    fn write_if_ready(&mut self, now: Duration) {
        let ready = |a: &Attempt| a.phase == Phase::Seal && a.prepared && a.all_done();
        if self.attempt.as_ref().is_some_and(ready) {
            if self.stages() {
                return self.begin_plan(now);
            }
            self.enter(Phase::Write, now);
            self.order(Order::Write);
        }
    }

    pub(super) fn on_committed(
        &mut self,
        epoch: u64,
        result: Result<String, String>,
        now: Duration,
    ) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.epoch != epoch || attempt.phase != Phase::Commit {
            return;
        }
        attempt.directory = match result {
            Ok(directory) => directory,
            Err(reason) => return self.abort(Why::Failed(reason), now),
        };
        if attempt.staging.is_some() {
            return self.on_staged(epoch, now);
        }
        let (outcome, suspend) = (attempt.outcome(now), attempt.suspend);
        self.next_epoch = epoch + 1;
        self.fate.newest_epoch = Some(epoch);
        self.committed += 1;
        self.log(format!("epoch {epoch}: committed"));
        if suspend {
            self.suspended = true;
            self.fate.state = JobState::Suspended;
            // What a rank did wrong before no longer matters: the job carries on from the epoch.
            self.fate.reason = None;
            self.fate.exit_status = None;
            self.outputs.push(Output::Record);
            if self.settings.requeue {
                // While its ranks are there the job has not failed, and what waits for its success waits on.
                self.outputs.push(Output::Requeue);
            }
            self.enter(Phase::End, now);
            self.order(Order::Terminate);
        } else {
            let watchers = self.take_watchers();
            self.enter(Phase::Release, now);
            // The application does not wait for job.json; whoever asked hears of the epoch when job.json names it.
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

    fn tell_phase(&mut self) {
        let Some(attempt) = &self.attempt else {
            return;
        };
        if self.hindered.is_some() && attempt.phase <= Phase::Check {
            // One more try, of which its outcome is told.
            return;
        }
        let message = ToCommand::Phase {
            epoch: attempt.epoch,
            phase: attempt.phase.name().to_owned(),
        };
        let watchers = attempt.watchers();
        self.tell(watchers, message);
    }

    /// To every rank.
    pub(super) fn order(&mut self, order: Order) {
        if let Some(attempt) = &self.attempt {
            let attempt = attempt.number;
            self.outputs
                .push(Output::Broadcast(ToAgent::Checkpoint { attempt, order }));
        }
    }
}
