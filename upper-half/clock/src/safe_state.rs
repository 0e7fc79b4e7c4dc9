//! The job's side of the clock: from the ranks' clocks to the moment when all of them are parked.
//!
//! Everything that this machine sends to all ranks - the targets, a raised target, a permission to
//! pass a park point - is an *order* with the next version number. A rank reports the version of the
//! newest order that it had applied when it looked at itself, and a report counts only if that is
//! the newest order of all. So a report that crossed an order on the way cannot be mistaken for an
//! answer to it, and because a rank leaves its parked state only by an order, "all parked, all current"
//! is final: it is the safe state of section 4.1.
//!
//! Channels from a rank to here, and from here to a rank, keep their order (TCP); nothing is assumed
//! between channels.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::group::Ggid;
use crate::rank::Activity;

/// What a rank says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    pub activity: Activity,
    /// Version of the newest order applied before looking.
    pub seen: u64,
    /// The poll that this answers, 0 for a report of the rank's own accord.
    pub poll: u32,
    /// Point-to-point messages sent and received since the job began.
    pub sent: u64,
    pub received: u64,
}

/// What happens to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rank's SEQ of every group that it knows, read after it has set its pending flag.
    Clocks { rank: u32, clocks: Vec<(Ggid, u64)> },
    /// A rank went past a target.
    Raise { rank: u32, ggid: Ggid, seq: u64 },
    /// A rank's report of itself.
    Report { rank: u32, report: Report },
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// To every rank: the targets, all at once (each rank picks the groups that it knows and keeps
    /// the rest for groups that it may come to know).
    Targets {
        version: u64,
        targets: Vec<(Ggid, u64)>,
    },
    /// To every rank: one target went up.
    Raised {
        version: u64,
        ggid: Ggid,
        target: u64,
    },
    /// To every rank, after a short pause: report again, naming this poll.
    Poll { poll: u32 },
    /// To every rank: a new version; those in `ranks` may pass one more park point.
    Advance { version: u64, ranks: Vec<u32> },
    /// Every rank is parked and stays so: the still point.
    SafeStateFound,
}

/// The machine for one checkpoint. It ends with [`Action::SafeStateFound`] and ignores what comes after.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SafeState {
    clocks_of: Vec<bool>,
    targets: BTreeMap<Ggid, u64>,
    version: u64,
    reports: Vec<Option<Report>>,
    /// How many reports are current, and what they say: so that a report costs the same for any number
    /// of ranks.
    current: Tally,
    /// The poll that is being answered, 0 while none is.
    poll: u32,
    polls: u32,
    /// What the previous complete poll found, if the job could not get on by itself then.
    stalled: Option<Vec<Report>>,
    advances: u64,
    found: bool,
}

/// Reports counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Tally {
    all: usize,
    running: usize,
    parked: usize,
}

impl Tally {
    fn add(&mut self, activity: Activity) {
        self.all += 1;
        self.running += usize::from(activity == Activity::Running);
        self.parked += usize::from(activity == Activity::Parked);
    }

    fn remove(&mut self, activity: Activity) {
        self.all -= 1;
        self.running -= usize::from(activity == Activity::Running);
        self.parked -= usize::from(activity == Activity::Parked);
    }
}

impl SafeState {
    /// A machine for `ranks` ranks, all of which have been asked for their clocks.
    pub fn new(ranks: usize) -> Self {
        SafeState {
            clocks_of: vec![false; ranks],
            targets: BTreeMap::new(),
            version: 0,
            reports: vec![None; ranks],
            current: Tally::default(),
            poll: 0,
            polls: 0,
            stalled: None,
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

    /// Ranks that are not known to be parked, for whoever has to explain a timeout.
    pub fn not_parked(&self) -> impl Iterator<Item = (u32, Option<Activity>)> + '_ {
        (0u32..)
            .zip(&self.reports)
            .map(|(rank, report)| (rank, self.current(report).map(|r| r.activity)))
            .filter(|(_, activity)| *activity != Some(Activity::Parked))
    }

    /// Ranks whose clocks have not come.
    pub fn clocks_missing(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..)
            .zip(&self.clocks_of)
            .filter(|(_, here)| !**here)
            .map(|(rank, _)| rank)
    }

    /// Handles one event.
    pub fn on(&mut self, event: Event) -> Vec<Action> {
        if self.found {
            return vec![];
        }
        match event {
            Event::Clocks { rank, clocks } => self.on_clocks(rank as usize, clocks),
            Event::Raise { ggid, seq, .. } => self.on_raise(ggid, seq),
            Event::Report { rank, report } => self.on_report(rank as usize, report),
        }
    }

    /// TARGET[ggid] := max over all ranks of SEQ[ggid] (section 4.2.1).
    fn on_clocks(&mut self, rank: usize, clocks: Vec<(Ggid, u64)>) -> Vec<Action> {
        match self.clocks_of.get_mut(rank) {
            Some(here) if !*here => *here = true,
            _ => return vec![],
        }
        for (ggid, seq) in clocks {
            let target = self.targets.entry(ggid).or_insert(0);
            *target = seq.max(*target);
        }
        if self.clocks_of.iter().any(|here| !here) {
            return vec![];
        }
        self.version = 1;
        self.current = Tally::default();
        vec![Action::Targets {
            version: self.version,
            targets: self.targets.iter().map(|(g, t)| (*g, *t)).collect(),
        }]
    }

    /// A raise that another rank has already brought about needs no new order.
    fn on_raise(&mut self, ggid: Ggid, seq: u64) -> Vec<Action> {
        let target = self.targets.entry(ggid).or_insert(0);
        if self.version == 0 || seq <= *target {
            return vec![];
        }
        *target = seq;
        self.order();
        vec![Action::Raised {
            version: self.version,
            ggid,
            target: seq,
        }]
    }

    fn on_report(&mut self, rank: usize, report: Report) -> Vec<Action> {
        let Some(before) = self.reports.get(rank).copied() else {
            return vec![];
        };
        if let Some(before) = self.current(&before) {
            self.current.remove(before.activity);
        }
        // A rank may report of its own accord right after it answered a poll: the answer stands.
        let poll = before.map_or(0, |before| before.poll).max(report.poll);
        let now = Some(Report { poll, ..report });
        self.reports[rank] = now;
        if let Some(now) = self.current(&now) {
            self.current.add(now.activity);
        }
        let ranks = self.reports.len();
        if self.current.parked == ranks {
            self.found = true;
            return vec![Action::SafeStateFound];
        }
        if self.current.running > 0 {
            self.poll = 0;
            self.stalled = None;
        }
        if self.current.all < ranks || self.current.running > 0 {
            return vec![];
        }
        self.on_stall(self.reports.iter().copied().flatten().collect())
    }

    /// Nobody runs and somebody waits. Either a message or the last member of a collective is just
    /// arriving, or a parked rank is needed. Two equal polls in a row tell the second from the first;
    /// should they be mistaken, a rank parks one call later than it could have.
    fn on_stall(&mut self, reports: Vec<Report>) -> Vec<Action> {
        if self.poll == 0 {
            return self.ask();
        }
        if reports.iter().any(|r| r.poll != self.poll) {
            return vec![];
        }
        let same = |before: &Vec<Report>| {
            before
                .iter()
                .zip(&reports)
                .all(|(a, b)| (a.activity, a.sent, a.received) == (b.activity, b.sent, b.received))
        };
        let parked: Vec<u32> = (0u32..)
            .zip(&reports)
            .filter(|(_, r)| r.activity == Activity::Parked)
            .map(|(rank, _)| rank)
            .collect();
        if !self.stalled.as_ref().is_some_and(same) || parked.is_empty() {
            self.stalled = Some(reports);
            return self.ask();
        }
        self.advances += 1;
        self.order();
        vec![Action::Advance {
            version: self.version,
            ranks: parked,
        }]
    }

    fn ask(&mut self) -> Vec<Action> {
        self.polls += 1;
        self.poll = self.polls;
        vec![Action::Poll { poll: self.poll }]
    }

    /// A new order: what was reported before it no longer counts.
    fn order(&mut self) {
        self.version += 1;
        self.current = Tally::default();
        self.poll = 0;
        self.stalled = None;
    }

    fn current(&self, report: &Option<Report>) -> Option<Report> {
        report.filter(|r| self.version > 0 && r.seen == self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Activity::*;

    fn report(activity: Activity, seen: u64, poll: u32) -> Report {
        Report {
            activity,
            seen,
            poll,
            sent: 0,
            received: 0,
        }
    }

    fn say(
        job: &mut SafeState,
        rank: u32,
        activity: Activity,
        seen: u64,
        poll: u32,
    ) -> Vec<Action> {
        job.on(Event::Report {
            rank,
            report: report(activity, seen, poll),
        })
    }

    fn targeted(clocks: &[&[(u64, u64)]]) -> (SafeState, Vec<Action>) {
        let mut job = SafeState::new(clocks.len());
        let mut actions = vec![];
        for (rank, clocks) in clocks.iter().enumerate() {
            assert_eq!(actions, vec![]);
            actions = job.on(Event::Clocks {
                rank: rank as u32,
                clocks: clocks.to_vec(),
            });
        }
        (job, actions)
    }

    #[test]
    fn a_target_is_the_maximum_over_all_ranks() {
        let (_, actions) = targeted(&[&[(1, 5)], &[(1, 4), (2, 7)], &[(2, 6)]]);
        assert_eq!(
            actions,
            vec![Action::Targets {
                version: 1,
                targets: vec![(1, 5), (2, 7)]
            }]
        );
    }

    #[test]
    fn a_report_that_crossed_a_raise_does_not_count() {
        let (mut job, _) = targeted(&[&[(1, 5)], &[(1, 5)]]);
        say(&mut job, 0, Parked, 1, 0);
        let raised = job.on(Event::Raise {
            rank: 1,
            ggid: 1,
            seq: 6,
        });
        assert_eq!(
            raised,
            vec![Action::Raised {
                version: 2,
                ggid: 1,
                target: 6
            }]
        );
        assert_eq!(say(&mut job, 1, Parked, 2, 0), vec![]);
        assert_eq!(say(&mut job, 0, Parked, 1, 0), vec![]);
        assert_eq!(say(&mut job, 0, Parked, 2, 0), vec![Action::SafeStateFound]);
    }

    #[test]
    fn a_raise_to_a_known_target_is_not_forwarded() {
        let (mut job, _) = targeted(&[&[(1, 5)], &[(1, 6)]]);
        assert_eq!(
            job.on(Event::Raise {
                rank: 0,
                ggid: 1,
                seq: 6
            }),
            vec![]
        );
        assert_eq!(job.version(), 1);
    }

    #[test]
    fn a_parked_rank_that_another_waits_for_may_go_on() {
        let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
        say(&mut job, 0, Waiting, 1, 0);
        assert_eq!(
            say(&mut job, 1, Parked, 1, 0),
            vec![Action::Poll { poll: 1 }]
        );
        say(&mut job, 0, Waiting, 1, 1);
        assert_eq!(
            say(&mut job, 1, Parked, 1, 1),
            vec![Action::Poll { poll: 2 }]
        );
        say(&mut job, 0, Waiting, 1, 2);
        assert_eq!(
            say(&mut job, 1, Parked, 1, 2),
            vec![Action::Advance {
                version: 2,
                ranks: vec![1]
            }]
        );
        // Nothing counts until both have seen it.
        assert_eq!(say(&mut job, 1, Parked, 1, 2), vec![]);
        say(&mut job, 0, Parked, 2, 0);
        assert_eq!(say(&mut job, 1, Parked, 2, 0), vec![Action::SafeStateFound]);
    }

    #[test]
    fn a_job_that_moves_is_not_advanced() {
        let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)]]);
        say(&mut job, 0, InCollective, 1, 0);
        say(&mut job, 1, Parked, 1, 0);
        for poll in 1..20 {
            let mut moving = report(InCollective, 1, poll);
            moving.received = u64::from(poll);
            job.on(Event::Report {
                rank: 0,
                report: moving,
            });
            assert_eq!(
                say(&mut job, 1, Parked, 1, poll),
                vec![Action::Poll { poll: poll + 1 }]
            );
        }
    }

    #[test]
    fn a_rank_that_runs_ends_the_polling() {
        let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)]]);
        say(&mut job, 0, Waiting, 1, 0);
        say(&mut job, 1, Parked, 1, 0);
        assert_eq!(say(&mut job, 0, Running, 1, 1), vec![]);
        assert_eq!(
            say(&mut job, 0, Waiting, 1, 0),
            vec![Action::Poll { poll: 2 }]
        );
    }

    #[test]
    fn a_report_of_its_own_accord_does_not_undo_an_answer() {
        let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
        say(&mut job, 0, Waiting, 1, 0);
        say(&mut job, 1, Parked, 1, 0);
        say(&mut job, 0, Waiting, 1, 1);
        say(&mut job, 0, InCollective, 1, 0);
        assert_eq!(
            say(&mut job, 1, Parked, 1, 1),
            vec![Action::Poll { poll: 2 }]
        );
    }

    #[test]
    fn who_is_missing_can_be_told() {
        let mut job = SafeState::new(3);
        job.on(Event::Clocks {
            rank: 1,
            clocks: vec![],
        });
        assert_eq!(job.clocks_missing().collect::<Vec<_>>(), vec![0, 2]);
        let (mut job, _) = targeted(&[&[], &[], &[]]);
        say(&mut job, 0, Parked, 1, 0);
        say(&mut job, 1, Waiting, 1, 0);
        assert_eq!(
            job.not_parked().collect::<Vec<_>>(),
            vec![(1, Some(Waiting)), (2, None)]
        );
    }

    #[test]
    fn unknown_ranks_and_repeated_clocks_change_nothing() {
        let mut job = SafeState::new(2);
        job.on(Event::Clocks {
            rank: 0,
            clocks: vec![(1, 1)],
        });
        job.on(Event::Clocks {
            rank: 0,
            clocks: vec![(1, 9)],
        });
        job.on(Event::Clocks {
            rank: 5,
            clocks: vec![(1, 9)],
        });
        let targets = job.on(Event::Clocks {
            rank: 1,
            clocks: vec![],
        });
        assert_eq!(
            targets,
            vec![Action::Targets {
                version: 1,
                targets: vec![(1, 1)]
            }]
        );
    }
}
