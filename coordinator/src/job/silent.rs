//! Ranks that cannot be reached, because their host is silent.
//!
//! Such a rank may live: its host has lost its network for a while, or for good. It cannot take part in a checkpoint, so what is under way is given
//! up, and requests wait for it as for anything that may pass. When its host answers again its agent comes back. When nobody else is left it counts
//! as lost: then the job is over, and its directory is free for a restart. An agent that comes later is turned away.

use std::time::Duration;

use super::ending::Why;
use super::roster::Cut;
use super::{Job, Output};

/// Whether the host of the coordinator is cut off from all others of the job.
#[derive(Debug, Default)]
pub(super) enum Isolation {
    #[default]
    None,
    /// When the directory is let go.
    Until(Duration),
    LetGo,
}

impl Isolation {
    pub fn due(&self) -> Option<Duration> {
        match self {
            Isolation::Until(due) => Some(*due),
            Isolation::None | Isolation::LetGo => None,
        }
    }
}

impl Job {
    /// Where no other host of the job can be reached there are no checkpoints, and the job may be carried on elsewhere: then the directory must not be
    /// held here. Not while ranks may write there; what the coordinator itself changes there keeps it by a [`Change`](crate::fence::Change).
    pub(super) fn let_go_if_isolated(&mut self, now: Duration) {
        if !self.roster.is_isolated(&self.settings.location) {
            if matches!(self.isolation, Isolation::LetGo) {
                self.outputs.push(Output::TakeAgain);
            }
            self.isolation = Isolation::None;
            return;
        }
        let busy = self.attempt.is_some() || self.staging.flushing().is_some();
        match self.isolation {
            Isolation::None => {
                self.isolation = Isolation::Until(now + self.settings.patience.grace);
            }
            Isolation::Until(due) if due <= now && busy => {
                self.isolation = Isolation::Until(now + self.settings.patience.grace);
            }
            Isolation::Until(due) if due <= now => {
                self.isolation = Isolation::LetGo;
                self.log(
                    "no other host of the job can be reached: the directory is let go until one is"
                        .to_owned(),
                );
                self.outputs.push(Output::LetGo);
            }
            Isolation::Until(_) | Isolation::LetGo => {}
        }
    }

    /// Nothing has been heard of a rank's host for too long.
    pub(super) fn on_unreachable(&mut self, rank: u32, now: Duration) {
        match self.roster.cut(rank) {
            // It is told by job.json to end, and does not come back.
            Cut::Silent if self.suspended => self.roster.give_up(rank),
            Cut::Silent => self.log(format!(
                "{}: its host has been silent for {}",
                self.roster.cut_off([rank]),
                self.settings.silence,
            )),
            Cut::Over => {}
        }
        self.is_cut_off(rank, now);
        if self.roster.nobody_connected() {
            self.deserted = Some(now);
        }
    }

    /// It takes part in nothing that is under way.
    fn is_cut_off(&mut self, rank: u32, now: Duration) {
        self.flush_lost(rank);
        if self.may_abort() {
            let reason = self.roster.cut_off([rank]);
            self.abort(Why::Refused(vec![reason]), now);
        }
        self.on_released(rank, now);
    }

    /// Its agent has come back. What it took part in before it has given up.
    pub(super) fn on_return(&mut self, rank: u32, was_connected: bool, now: Duration) {
        if was_connected {
            self.is_cut_off(rank, now);
        }
        self.log(format!("{} can be reached again", self.roster.named(rank)));
    }

    /// Why there can be no checkpoint for now.
    pub(super) fn out_of_reach(&self) -> Option<String> {
        let silent: Vec<u32> = self.roster.silent().collect();
        (!silent.is_empty()).then(|| self.roster.cut_off(silent))
    }

    /// Nobody else is left: those that are silent count as lost.
    pub(super) fn give_up_the_silent(&mut self) {
        let silent: Vec<u32> = self.roster.silent().collect();
        if silent.is_empty() {
            return;
        }
        let who = self.roster.cut_off(silent.iter().copied());
        for rank in silent {
            self.roster.give_up(rank);
        }
        let lost = format!("{who}, and no other rank is left");
        self.log(lost.clone());
        if self.suspended {
            return;
        }
        // A lost host is why the others have ended: their launcher ends them.
        self.fate.reason = Some(match self.fate.reason.take() {
            None => lost,
            Some(first) => format!("{lost}; {first}"),
        });
    }
}
