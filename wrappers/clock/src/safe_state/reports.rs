//! The ranks' reports, and which of them count. A report costs the same for any number of ranks.

use alloc::vec;
use alloc::vec::Vec;

use super::events::Report;
use crate::rank::Activity;
use crate::steps::Steps;

/// The newest report of every rank, and the newest order that it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reports {
    newest: Vec<Option<Report>>,
    /// Version of the newest order sent to each rank.
    ordered: Vec<Option<u64>>,
    current: Tally,
}

/// Current reports, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    pub all: usize,
    pub running: usize,
    pub waiting: usize,
    pub parked: usize,
}

impl Tally {
    /// Whether a rank gets on without the parked ones, as far as can be seen.
    ///
    /// A rank in a collective operation waits for members that have it as a target, and so are not parked. If no rank runs
    /// and no rank waits for a message, all ranks that are not parked are in collective operations. Not all of these can
    /// wait for each other, so one has all that it needs, except the processor or the time that its data take.
    pub fn somebody_moves<S: Steps>(&self) -> bool {
        self.running > 0 || S::COLLECTIVES_END && self.waiting == 0
    }

    fn add(&mut self, activity: Activity) {
        self.all += 1;
        self.running += usize::from(activity == Activity::Running);
        self.waiting += usize::from(activity == Activity::Waiting);
        self.parked += usize::from(activity == Activity::Parked);
    }

    fn remove(&mut self, activity: Activity) {
        self.all -= 1;
        self.running -= usize::from(activity == Activity::Running);
        self.waiting -= usize::from(activity == Activity::Waiting);
        self.parked -= usize::from(activity == Activity::Parked);
    }
}

impl Reports {
    pub fn new(ranks: usize) -> Self {
        Reports {
            newest: vec![None; ranks],
            ordered: vec![None; ranks],
            current: Tally::default(),
        }
    }

    pub fn ranks(&self) -> usize {
        self.newest.len()
    }

    /// The current reports, counted.
    pub fn current(&self) -> Tally {
        self.current
    }

    /// A rank's report, if it counts.
    pub fn current_of(&self, rank: usize) -> Option<Report> {
        let ordered = (*self.ordered.get(rank)?)?;
        self.newest[rank].filter(|report| report.seen == ordered)
    }

    /// The current reports in the order of the ranks.
    pub fn all(&self) -> impl Iterator<Item = Option<Report>> + '_ {
        (0..self.ranks()).map(|rank| self.current_of(rank))
    }

    /// Notes an order to a rank: its earlier reports no longer count.
    pub fn order(&mut self, rank: usize, version: u64) {
        if let Some(before) = self.current_of(rank) {
            self.current.remove(before.activity);
        }
        if let Some(ordered) = self.ordered.get_mut(rank) {
            *ordered = Some(version);
        }
    }

    /// Takes a report. Returns the poll that the rank has last answered before, or `None` if there is
    /// no such rank.
    pub fn take(&mut self, rank: usize, report: Report) -> Option<u32> {
        let answered = self.newest.get(rank)?.map_or(0, |before| before.poll);
        if let Some(before) = self.current_of(rank) {
            self.current.remove(before.activity);
        }
        // A rank may report of its own accord right after it answered a poll: the answer stands.
        let poll = answered.max(report.poll);
        self.newest[rank] = Some(Report { poll, ..report });
        if let Some(now) = self.current_of(rank) {
            self.current.add(now.activity);
        }
        Some(answered)
    }

    /// Takes a report as if it were current, which is wrong: a mutant does it.
    pub fn take_stale(&mut self, rank: usize, report: Report) -> Option<u32> {
        let seen = self.ordered.get(rank)?.unwrap_or(0);
        self.take(rank, Report { seen, ..report })
    }
}
