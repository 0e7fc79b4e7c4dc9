//! Ranks that cannot be reached, because their host is silent.
//!
//! A silent rank may live, if its host has lost its network for a while, or for good. It cannot take part in a checkpoint. So the attempt under way is given
//! up, and requests wait for the rank as for any hindrance that may pass. Its agent comes back when its host answers again. If no other rank is left, it
//! counts as lost: then the job is over, and its directory is free for a restart. An agent that comes later is turned away.

use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_refusals::{Refusal, refusal};

use super::absence::Isolation;
use super::ending::AbortReason;
use super::roster::SilenceOutcome;
use super::{Job, Output};

impl Job {
    /// Releases the directory if no other host of the job can be reached. Then there are no checkpoints, and the job may be carried on elsewhere, so the
    /// directory must not be held here. It is not released while ranks may write there. The coordinator's own changes keep it by a
    /// [`Change`](crate::fence::Change).
    pub(super) fn let_go_if_isolated(&mut self, now: Duration) {
        if !self.roster.is_isolated(&self.settings.location) {
            if matches!(self.absence.isolation, Isolation::LetGo) {
                self.outputs.push(Output::TakeAgain);
            }
            self.absence.isolation = Isolation::None;
            return;
        }
        let busy = self.attempt.is_some() || self.staging.flushing().is_some();
        match self.absence.isolation {
            Isolation::None => {
                self.absence.isolation = Isolation::Until(now + self.settings.patience.grace);
            }
            Isolation::Until(due) if due <= now && busy => {
                self.absence.isolation = Isolation::Until(now + self.settings.patience.grace);
            }
            Isolation::Until(due) if due <= now => {
                self.absence.isolation = Isolation::LetGo;
                self.log(
                    "the coordinator cannot reach any other host of the job: it gives up the directory until it can"
                        .to_owned(),
                );
                self.outputs.push(Output::LetGo);
            }
            Isolation::Until(_) | Isolation::LetGo => {}
        }
    }

    /// Handles a rank whose host has been silent for too long.
    pub(super) fn on_unreachable(&mut self, rank: Rank, now: Duration) {
        match self.roster.cut(rank) {
            // The rank learns its end from job.json, and does not come back.
            SilenceOutcome::Silent if self.is_suspended() => self.roster.give_up(rank),
            SilenceOutcome::Silent => self.log(format!(
                "{}: its host has been silent for {}",
                self.roster.cut_off([rank]),
                self.settings.silence,
            )),
            SilenceOutcome::Over => {}
        }
        self.is_cut_off(rank, now);
        if self.roster.nobody_connected() {
            self.absence.deserted = Some(now);
        }
    }

    /// Removes the rank from the attempt and the flush under way.
    fn is_cut_off(&mut self, rank: Rank, now: Duration) {
        self.flush_lost(rank);
        if self.may_abort() {
            let who = self.roster.cut_off([rank]);
            let reason = refusal!(RankUnreachable, "{who}");
            self.abort(AbortReason::Refused(vec![reason]), now);
        }
        self.on_released(rank, now);
    }

    /// Handles an agent that has come back. It has given up its part in any earlier attempt.
    pub(super) fn on_return(&mut self, rank: Rank, was_connected: bool, now: Duration) {
        if was_connected {
            self.is_cut_off(rank, now);
        }
        self.log(format!("{} can be reached again", self.roster.named(rank)));
    }

    /// The reason why there can be no checkpoint for now.
    pub(super) fn out_of_reach(&self) -> Option<Refusal> {
        let silent: Vec<Rank> = self.roster.silent().collect();
        (!silent.is_empty()).then(|| refusal!(RankUnreachable, "{}", self.roster.cut_off(silent)))
    }

    /// Counts the silent ranks as lost, since no other rank is left.
    pub(super) fn give_up_the_silent(&mut self) {
        let silent: Vec<Rank> = self.roster.silent().collect();
        if silent.is_empty() {
            return;
        }
        let who = self.roster.cut_off(silent.iter().copied());
        for rank in silent {
            self.roster.give_up(rank);
        }
        let lost = format!("{who}, and no other rank is running");
        self.log(lost.clone());
        if self.is_suspended() {
            return;
        }
        // The lost host is the reason why the other ranks have ended: their launcher ends them.
        self.fate.reason = Some(match self.fate.reason.take() {
            None => lost,
            Some(first) => format!("{lost}; {first}"),
        });
    }
}
