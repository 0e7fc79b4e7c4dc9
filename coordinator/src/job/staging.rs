//! The job's storage tiers: the tiers of all ranks, the destinations of blocks, and the time at which a staged epoch is durable.
//!
//! If the launch has tiers, a phase *plan* comes before the phase *write*. Every rank reports the size of its image, and the exact scheduler decides the
//! destinations. When every block is on some tier, the epoch is *staged* and the application runs again. The agents copy the blocks of the fast tiers to the
//! slow one. Then the epoch is *durable*, which means the same as committed without tiers. A suspend writes to the slow tier at once, since the fast tiers
//! may be gone tomorrow.

mod places;

use std::time::Duration;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_multilevel::placement::Rules;
use stillpoint_protocol::agent::{Order, ToAgent, Written};
use stillpoint_protocol::command::{CommittedEpoch, Staging as Staged, TierStatus, ToCommand};
use stillpoint_protocol::tier::{Announced, Moved, Rates, Sized};
use stillpoint_refusals::{Refusal, refusal};

use super::ending::AbortReason;
use super::phase::Phase;
use super::rank_names::ranks_in_words;
use super::{Job, Output};

/// The state of a job with tiers.
#[derive(Debug)]
pub struct Staging {
    /// `None`: the launch has no tiers.
    pub rules: Option<Rules>,
    announced: Vec<Option<Announced>>,
    rates: Vec<Option<Rates>>,
    sized: Vec<Option<Sized>>,
    predicted: f64,
    moved: Moved,
    flush: Option<Flush>,
    /// The epoch that is staged and not durable yet.
    epoch: Option<Epoch>,
}

/// A staged epoch on its way to the slow tier.
#[derive(Debug)]
struct Flush {
    epoch: Epoch,
    outcome: CommittedEpoch,
    watchers: Vec<u64>,
    done: Vec<bool>,
    began: Duration,
}

impl Staging {
    pub fn new(rules: Option<Rules>, ranks: u32) -> Staging {
        let ranks = ranks as usize;
        Staging {
            rules,
            announced: vec![None; ranks],
            rates: vec![None; ranks],
            sized: vec![None; ranks],
            predicted: 0.0,
            moved: Moved::default(),
            flush: None,
            epoch: None,
        }
    }

    /// Forgets the tiers that were announced before the agents came.
    pub fn forget_peers(&mut self) {
        self.announced.fill(None);
    }

    /// The staged epoch on its way to the slow tier; `None`: no flush is under way.
    pub fn flushing(&self) -> Option<Epoch> {
        self.flush.as_ref().map(|flush| flush.epoch)
    }

    /// Whether every agent has done its part of the flush. The epoch does not have its final name yet.
    pub fn securing(&self) -> bool {
        let all = |flush: &Flush| flush.done.iter().all(|done| *done);
        self.flush.as_ref().is_some_and(all)
    }

    /// Commands that wait for the flush.
    pub fn watchers(&self) -> impl Iterator<Item = u64> + '_ {
        let flush = self.flush.iter();
        flush.flat_map(|flush| flush.watchers.iter().copied())
    }

    pub fn is_waited_for(&self) -> bool {
        self.watchers().next().is_some()
    }

    /// Describes a flush that has taken long.
    pub fn flushes_for(&self, now: Duration, long: Duration) -> Option<Refusal> {
        let flush = self.flush.as_ref()?;
        if now < flush.began + long {
            return None;
        }
        let missing: Vec<Rank> = Rank::of_each(&flush.done)
            .filter_map(|(rank, done)| (!done).then_some(rank))
            .collect();
        let epoch = flush.epoch;
        Some(match missing.is_empty() {
            true => refusal!(
                JobBusy,
                "epoch {epoch}, flush: the coordinator is still writing its name to the disk (is the file system busy?)"
            ),
            false => {
                let who = ranks_in_words(&missing, flush.done.len());
                refusal!(
                    JobBusy,
                    "epoch {epoch}, flush: {who} still copying to the slow tier"
                )
            }
        })
    }

    /// The epoch that is staged and not durable yet.
    pub fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    pub fn status(&self) -> Vec<TierStatus> {
        let announced = self.announced.iter().zip(&self.rates);
        announced
            .filter_map(|(announced, rates)| {
                Some(TierStatus {
                    announced: announced.clone()?,
                    rates: rates.unwrap_or_default(),
                })
            })
            .collect()
    }
}

impl Job {
    /// Whether the attempt under way stages its images.
    pub(super) fn stages(&self) -> bool {
        let attempt = self.attempt.as_ref();
        self.staging.rules.is_some() && attempt.is_some_and(|attempt| !attempt.suspend)
    }

    pub(super) fn on_tier(&mut self, rank: Rank, mut announced: Announced) {
        if self.roster.shares_its_name(rank) {
            let host = &announced.host;
            announced.problem = Some(format!(
                "several hosts of the job have the name {host}: storage tiers need hosts with different names"
            ));
        }
        if let Some(problem) = &announced.problem {
            self.log(format!("rank {rank}: {problem}"));
        }
        let Some(slot) = self.staging.announced.get_mut(rank.index()) else {
            return;
        };
        *slot = Some(announced);
        let all: Option<Vec<Announced>> = self.staging.announced.iter().cloned().collect();
        if let Some(peers) = all {
            self.outputs.push(Output::Broadcast(ToAgent::Peers(peers)));
        }
    }

    pub(super) fn on_measured(
        &mut self,
        rank: Rank,
        rates: Rates,
        problem: Option<String>,
        now: Duration,
    ) {
        if let Some(problem) = problem {
            self.log(format!("rank {rank}: {problem}"));
            self.record.last_failure = Some(refusal!(TierFailed, "rank {rank}: {problem}"));
        }
        if let Some(slot) = self.staging.rates.get_mut(rank.index()) {
            *slot = Some(rates);
        }
        self.plan_if_ready(now);
    }

    /// Begins the plan after all ranks are sealed: it asks for the sizes of their images.
    pub(super) fn begin_plan(&mut self, now: Duration) {
        self.staging.sized.fill(None);
        self.staging.moved = Moved::default();
        self.enter(Phase::Plan, now);
        let problems: Vec<Refusal> = Rank::of_each(&self.staging.announced)
            .filter_map(|(rank, announced)| {
                let problem = announced.as_ref()?.problem.as_ref()?;
                Some(refusal!(TierFailed, "rank {rank}: {problem}"))
            })
            .collect();
        match problems.is_empty() {
            true => self.order(Order::Size),
            false => self.abort(AbortReason::Failed(Refusal::together(problems)), now),
        }
    }

    pub(super) fn on_sized(&mut self, rank: Rank, sized: Sized, now: Duration) {
        if let Some(slot) = self.staging.sized.get_mut(rank.index()) {
            *slot = Some(sized);
        }
        if let Some(attempt) = &mut self.attempt {
            attempt.reports.done(rank);
        }
        self.plan_if_ready(now);
    }

    /// Plans once every rank has reported the size of its image and its rates.
    fn plan_if_ready(&mut self, now: Duration) {
        let Some(attempt) = &self.attempt else {
            return;
        };
        if attempt.phase != Phase::Plan {
            return;
        }
        let (number, epoch) = (attempt.number, attempt.epoch);
        match self.staging.place() {
            None => {}
            Some(Err(reason)) => {
                self.abort(AbortReason::Failed(refusal!(TierFailed, "{reason}")), now);
            }
            Some(Ok((placement, assignments))) => {
                self.staging.predicted = placement.blocking;
                self.log(format!(
                    "epoch {epoch}: staging will take {:.3} s if the tiers keep their pace",
                    placement.blocking
                ));
                self.enter(Phase::Write, now);
                for (rank, assignment) in Rank::of_each(assignments) {
                    let message = ToAgent::Checkpoint {
                        attempt: number,
                        order: Order::Stage(assignment),
                    };
                    self.outputs.push(Output::Send { rank, message });
                }
            }
        }
    }

    pub(super) fn on_staged_image(
        &mut self,
        rank: Rank,
        written: Written,
        moved: &Moved,
        now: Duration,
    ) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        self.staging.moved.add(moved);
        attempt.reports.has_written(rank, written);
        if attempt.reports.done(rank) {
            let images = attempt.reports.images();
            attempt.staging = Some(Staged {
                blocking: now.saturating_sub(attempt.times.phase_began).as_secs_f64(),
                predicted: self.staging.predicted,
                moved: self.staging.moved,
            });
            let (attempt, epoch) = (attempt.number, attempt.epoch);
            self.enter(Phase::Commit, now);
            self.outputs.push(Output::Stage {
                attempt,
                epoch,
                images,
            });
        }
    }

    /// Handles a staged epoch: every block is on some tier, so the application runs again, and the agents begin to copy.
    pub(super) fn on_staged(&mut self, epoch: Epoch, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let (outcome, directory) = (attempt.outcome(now), attempt.directory().to_owned());
        self.note_stop(false, now);
        self.next_epoch = epoch.next();
        self.staging.epoch = Some(epoch);
        self.staging.flush = Some(Flush {
            epoch,
            outcome,
            watchers: self.take_watchers(),
            done: vec![false; self.roster.size()],
            began: now,
        });
        self.log(format!("epoch {epoch}: staged"));
        self.enter(Phase::Release, now);
        self.order(Order::Committed);
        self.outputs
            .push(Output::Broadcast(ToAgent::Flush { epoch, directory }));
        self.skip_the_gone(now);
    }

    pub(super) fn on_flushed(&mut self, rank: Rank, epoch: Epoch, problem: Option<String>) {
        let Some(flush) = &mut self.staging.flush else {
            return;
        };
        if flush.epoch != epoch {
            return;
        }
        if let Some(problem) = problem {
            let reason = format!("{}: {problem}", self.roster.named(rank));
            return self.give_up_flush(&reason);
        }
        if let Some(done) = flush.done.get_mut(rank.index()) {
            *done = true;
        }
        if self.staging.securing() {
            self.outputs.push(Output::Secure { epoch });
        }
    }

    /// Gives the flush up if a rank has gone that has not copied its blocks yet.
    pub(super) fn flush_lost(&mut self, rank: Rank) {
        let lost = |flush: &Flush| flush.done.get(rank.index()) == Some(&false);
        if self.staging.flush.as_ref().is_some_and(lost) {
            let reason = format!("{} is gone", self.roster.named(rank));
            self.give_up_flush(&reason);
        }
    }

    fn give_up_flush(&mut self, reason: &str) {
        let Some(flush) = self.staging.flush.take() else {
            return;
        };
        let epoch = flush.epoch;
        let reason = refusal!(
            TierFailed,
            "epoch {epoch} is staged, but not durable: {reason}; a restart completes it if the fast tiers still hold it"
        );
        self.log(reason.to_string());
        self.record.last_failure = Some(reason.clone());
        let ahead = None;
        self.tell(flush.watchers, ToCommand::Aborted { reason, ahead });
    }

    /// Handles the end of giving the epoch its final name.
    pub(super) fn on_durable(
        &mut self,
        epoch: Epoch,
        result: Result<String, Refusal>,
        now: Duration,
    ) {
        if self.recovery.epoch() == Some(epoch) {
            return self.on_recovered_epoch(epoch, result);
        }
        let directory = match result {
            Ok(directory) => directory,
            Err(reason) => return self.give_up_flush(reason.details()),
        };
        let Some(mut flush) = self.staging.flush.take() else {
            return;
        };
        let seconds = now.saturating_sub(flush.began).as_secs_f64();
        flush.outcome.phases.push(("flush".to_owned(), seconds));
        self.trace_flush(epoch, seconds);
        flush.outcome.directory = directory;
        self.staging.epoch = None;
        self.fate.newest_epoch = Some(epoch);
        self.note_durable(now);
        self.record.committed(&flush.outcome);
        self.log(format!("epoch {epoch}: durable"));
        self.happens("checkpoint", Some(epoch), None);
        self.outputs.push(Output::Record);
        self.outputs
            .push(Output::Broadcast(ToAgent::Durable { epoch }));
        self.tell(flush.watchers, ToCommand::Committed(flush.outcome));
    }
}
