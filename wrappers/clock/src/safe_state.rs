//! The job's side of the clock: from the ranks' clocks to the moment when all of them are parked.
//!
//! Everything that this machine sends to a rank - its targets, a raised target, a permission to pass a park point -
//! is an *order* with a new version number. A rank reports the version of the newest order that it had
//! applied when it looked at itself, and a report counts only if that is the newest order that the rank was
//! sent. So a report that crossed an order on the way cannot be mistaken for an answer to it. Because a
//! rank leaves its parked state only by an order, "all parked, all current" is final: it is the safe state of
//! section 4.1.
//!
//! Orders go only where they change something: targets to ranks that are behind them, raises to the group's
//! members. A rank that comes to know a group meanwhile says so before its next report, and then gets the number that
//! the group's members already have to reach as an order.
//!
//! Channels from a rank to here, and from here to a rank, keep their order (TCP); nothing is assumed
//! between channels.

mod events;
mod groups;
mod reports;
mod stall;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use crate::group::Ggid;
use crate::rank::Activity;
use crate::steps::{Every, Steps};
use groups::Targets;
use reports::Reports;
use stall::{Stall, Verdict};

pub use events::{Action, Event, Report};

/// The machine for one checkpoint. It ends with [`Action::SafeStateFound`] and ignores later events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SafeState<S: Steps = Every> {
    /// Kept until the clocks of all ranks are here.
    clocks_of: Vec<Option<Vec<(Ggid, u64)>>>,
    clocks_missing: usize,
    targets: Targets<S>,
    /// Of the newest order; 0 before the targets.
    version: u64,
    reports: Reports,
    stall: Stall,
    advances: u64,
    found: bool,
}

impl<S: Steps> SafeState<S> {
    /// A machine for `ranks` ranks, all of which have been asked for their clocks.
    pub fn new(ranks: usize) -> Self {
        SafeState {
            clocks_of: vec![None; ranks],
            clocks_missing: ranks,
            targets: Targets::default(),
            version: 0,
            reports: Reports::new(ranks),
            stall: Stall::default(),
            advances: 0,
            found: false,
        }
    }

    /// Whether the safe state has been found.
    pub fn found(&self) -> bool {
        self.found
    }

    /// Version of the newest order.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How often parked ranks had to be let on.
    pub fn advances(&self) -> u64 {
        self.advances
    }

    /// Ranks that are not known to be parked, for a person who has to explain a timeout.
    pub fn not_parked(&self) -> impl Iterator<Item = (u32, Option<Activity>)> + '_ {
        (0u32..)
            .zip(self.reports.all())
            .map(|(rank, report)| (rank, report.map(|r| r.activity)))
            .filter(|(_, activity)| *activity != Some(Activity::Parked))
    }

    /// Ranks whose clocks have not come.
    pub fn clocks_missing(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..)
            .zip(&self.clocks_of)
            .filter(|(_, clocks)| clocks.is_none())
            .map(|(rank, _)| rank)
    }

    /// Handles one event.
    pub fn on(&mut self, event: Event) -> Vec<Action> {
        if self.found {
            return vec![];
        }
        match event {
            Event::Clocks { rank, clocks } => self.on_clocks(rank, clocks),
            Event::Joined { rank, ggid } => self.on_joined(rank, ggid),
            Event::Raise { rank, ggid, seq } => self.on_raise(rank, ggid, seq),
            Event::Report { rank, report } => self.on_report(rank as usize, report),
        }
    }

    /// TARGET[ggid] := max over all ranks of SEQ[ggid] (section 4.2.1).
    fn on_clocks(&mut self, rank: u32, clocks: Vec<(Ggid, u64)>) -> Vec<Action> {
        match self.clocks_of.get_mut(rank as usize) {
            Some(place) if place.is_none() => *place = Some(clocks),
            // Said before, or all are here.
            _ => return vec![],
        }
        self.clocks_missing -= 1;
        if self.clocks_missing > 0 {
            return vec![];
        }
        for (rank, clocks) in (0u32..).zip(core::mem::take(&mut self.clocks_of)) {
            for (ggid, seq) in clocks.into_iter().flatten() {
                self.targets.join(rank, ggid, seq);
            }
        }
        let ranks = self.reports.ranks();
        let version = self.order(0..ranks as u32);
        (0u32..)
            .zip(self.targets.ahead(ranks))
            .map(|(rank, targets)| Action::Targets {
                rank,
                version,
                targets,
            })
            .collect()
    }

    /// A rank that comes to know a group has to come after its members.
    fn on_joined(&mut self, rank: u32, ggid: Ggid) -> Vec<Action> {
        match self.targets.join(rank, ggid, 0) {
            Some(target) if self.version > 0 => self.raised(vec![rank], ggid, target),
            _ => vec![],
        }
    }

    /// A raise that another rank has already brought about needs no new order.
    fn on_raise(&mut self, rank: u32, ggid: Ggid, seq: u64) -> Vec<Action> {
        match self.targets.raise(rank, ggid, seq) {
            Some(others) if self.version > 0 && S::PASS_ON => self.raised(others, ggid, seq),
            _ => vec![],
        }
    }

    fn raised(&mut self, ranks: Vec<u32>, ggid: Ggid, target: u64) -> Vec<Action> {
        let version = self.order(ranks.iter().copied());
        vec![Action::Raised {
            ranks,
            version,
            ggid,
            target,
        }]
    }

    fn on_report(&mut self, rank: usize, report: Report) -> Vec<Action> {
        let taken = match S::CURRENT {
            true => self.reports.take(rank, report),
            false => self.reports.take_stale(rank, report),
        };
        let Some(answered) = taken else {
            return vec![];
        };
        self.stall.note(answered, report.poll);
        let (ranks, current) = (self.reports.ranks(), self.reports.current());
        let parked = match S::ALL_PARKED {
            true => current.parked,
            false => current.all - current.running,
        };
        if parked == ranks {
            self.found = true;
            return vec![Action::SafeStateFound];
        }
        if current.all < ranks || current.parked == 0 {
            return vec![];
        }
        self.on_stall(ranks)
    }

    fn on_stall(&mut self, ranks: usize) -> Vec<Action> {
        let somebody_moves = self.reports.current().somebody_moves::<S>();
        let reports = self.reports.all().flatten();
        match self.stall.judge(ranks, somebody_moves, reports) {
            Verdict::Wait => vec![],
            Verdict::Stalled if S::ADVANCE => {
                self.stall.let_on(somebody_moves);
                self.advance()
            }
            Verdict::Stalled | Verdict::Ask => {
                let (poll, patience) = self.stall.ask(somebody_moves);
                vec![Action::Poll { poll, patience }]
            }
        }
    }

    /// Lets every parked rank on.
    fn advance(&mut self) -> Vec<Action> {
        let is_parked = |(rank, report): (u32, Option<Report>)| {
            (report?.activity == Activity::Parked).then_some(rank)
        };
        let ranks: Vec<u32> = (0u32..)
            .zip(self.reports.all())
            .filter_map(is_parked)
            .collect();
        self.advances += 1;
        let version = self.order(ranks.iter().copied());
        vec![Action::Advance { ranks, version }]
    }

    /// Sends a new order to those ranks and returns its version.
    fn order(&mut self, ranks: impl Iterator<Item = u32>) -> u64 {
        self.version += 1;
        for rank in ranks {
            self.reports.order(rank as usize, self.version);
        }
        self.stall.moves();
        self.version
    }
}
