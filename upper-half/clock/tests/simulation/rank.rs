//! A rank and its agent: what the stubs and the agent's thread do, step by step.

use std::collections::VecDeque;

use stillpoint_clock::rank::{
    Activity, Begin, Finish, Pending, all_reached, commit_begin, commit_finish, may_park, observe,
};
use stillpoint_clock::safe_state::Report;

use crate::world::{Mutation, Op};

/// Where a rank stands in the operation at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// In the application, before the operation.
    Before,
    /// The optimistic increment is done, the flag not yet tested.
    Incremented,
    /// The flag was seen and the increment taken back.
    Deciding,
    /// In a collective operation.
    Inside,
    /// At the end of a call.
    Leaving,
}

#[derive(Clone, Debug)]
pub struct Rank {
    pub program: Vec<Op>,
    pub at: usize,
    pub step: Step,
    pub seq: Vec<u64>,
    pub target: Vec<u64>,
    pub member: Vec<bool>,
    pub pending: Pending,
    pub advances: u32,
    /// What the driver says about itself.
    pub doing: Activity,
    /// Steps for which it is not stopped again in the application, having just been let on; each
    /// time twice as many.
    pub left_alone: u64,
    pub grace: u64,
    /// Raises that the agent has yet to send.
    pub raises: Vec<(u64, u64)>,
    /// Messages pulled in, by source.
    pub mailbox: Vec<u64>,
    pub sent: u64,
    pub received: u64,
    pub agent: Agent,
    pub to_coordinator: VecDeque<FromRank>,
    pub from_coordinator: VecDeque<ToRank>,
}

#[derive(Clone, Debug, Default)]
pub struct Agent {
    pub seen: u64,
    /// First half of a look.
    pub before: Option<(Activity, u32)>,
    pub reported: Option<Activity>,
    /// The flag is set, the clocks are not yet read.
    pub clocks_due: bool,
    /// Only with [`Mutation::ReadsBeforeFlag`].
    pub flag_due: bool,
}

#[derive(Clone, Debug)]
pub enum FromRank {
    Clocks(Vec<(u64, u64)>),
    Raise(u64, u64),
    Report(Report),
    Counts(u32, u64, u64),
}

#[derive(Clone, Debug)]
pub enum ToRank {
    Begin,
    Targets(u64, Vec<(u64, u64)>),
    Raised(u64, u64, u64),
    Advance(u64, u32),
    Poll(u32),
    Drain(u32),
    Release,
}

impl Rank {
    pub fn new(program: Vec<Op>, member: Vec<bool>, size: usize) -> Rank {
        Rank {
            program,
            at: 0,
            step: Step::Before,
            seq: vec![0; member.len()],
            target: vec![0; member.len()],
            member,
            pending: Pending::No,
            advances: 0,
            doing: Activity::Running,
            left_alone: 0,
            grace: 1,
            raises: vec![],
            mailbox: vec![0; size],
            sent: 0,
            received: 0,
            agent: Agent::default(),
            to_coordinator: VecDeque::new(),
            from_coordinator: VecDeque::new(),
        }
    }

    /// Operations of the group that this rank has begun.
    pub fn entered(&self, group: usize) -> u64 {
        let ahead = match (self.step, self.program.get(self.at)) {
            (Step::Incremented, Some(Op::Collective(g) | Op::Start(g))) => *g == group,
            _ => false,
        };
        self.seq[group] - u64::from(ahead)
    }

    pub fn reached(&self) -> bool {
        all_reached(self.seq.iter().copied().zip(self.target.iter().copied()))
    }

    pub fn next(&mut self) {
        self.at += 1;
        self.step = Step::Before;
    }

    /// Parked by the stop signal, or while it waits, if it may be.
    pub fn stop_if_reached(&mut self) -> bool {
        if !may_park(self.pending, self.reached(), self.advances) {
            return false;
        }
        if self.left_alone > 0 {
            self.left_alone -= 1;
            return false;
        }
        self.doing = Activity::Parked;
        true
    }

    /// Parked, and the bell has rung.
    pub fn wake_if_needed(&mut self) {
        if self.doing != Activity::Parked {
            return;
        }
        let reached = self.reached();
        match (self.pending, self.step) {
            (Pending::Targeted, _) if reached && self.advances == 0 => {}
            // Parked before a collective operation: its own decision uses the advance.
            (_, Step::Deciding) => self.doing = Activity::Running,
            (pending, _) => {
                self.doing = Activity::Running;
                if pending == Pending::Targeted && reached {
                    self.advances -= 1;
                    self.let_on();
                }
                if self.step == Step::Leaving {
                    self.next();
                }
            }
        }
    }

    pub fn let_on(&mut self) {
        self.left_alone = self.grace;
        self.grace = (2 * self.grace).min(64);
    }

    pub fn enter(&mut self, op: Op) {
        match op {
            Op::Collective(_) => {
                self.doing = Activity::InCollective;
                self.step = Step::Inside;
            }
            _ => self.step = Step::Leaving,
        }
    }

    pub fn decide(&mut self, op: Op, group: usize, silent: bool) {
        let (seq, target) = (self.seq[group], self.target[group]);
        match commit_begin(self.pending, self.reached(), self.advances, seq, target) {
            Begin::AwaitTargets => {}
            Begin::Park => self.doing = Activity::Parked,
            Begin::Go {
                raise,
                uses_advance,
            } => {
                self.advances -= u32::from(uses_advance);
                self.seq[group] += 1;
                if raise {
                    self.target[group] = self.target[group].max(seq + 1);
                    if !silent {
                        self.raises.push((group as u64, seq + 1));
                    }
                }
                self.enter(op);
            }
        }
    }

    pub fn leave(&mut self) {
        match commit_finish(self.pending, self.reached(), self.advances) {
            Finish::Park => self.doing = Activity::Parked,
            Finish::Return { uses_advance } => {
                self.advances -= u32::from(uses_advance);
                if uses_advance {
                    self.let_on();
                }
                self.next();
            }
        }
    }

    pub fn send_raises(&mut self) {
        let raises = std::mem::take(&mut self.raises);
        let messages = raises
            .into_iter()
            .map(|(ggid, seq)| FromRank::Raise(ggid, seq));
        self.to_coordinator.extend(messages);
    }

    pub fn send_clocks(&mut self) {
        let clocks = (0u64..)
            .zip(&self.seq)
            .zip(&self.member)
            .filter(|(_, member)| **member)
            .map(|((ggid, seq), _)| (ggid, *seq))
            .collect();
        self.to_coordinator.push_back(FromRank::Clocks(clocks));
    }

    /// An order was applied: it is answered by a look.
    pub fn ordered(&mut self, version: u64) {
        self.agent.seen = version;
        self.agent.reported = None;
        self.agent.before = Some((self.doing, 0));
    }

    /// Second half of a look.
    pub fn look_again(&mut self, before: Activity, mutation: Mutation) {
        let poll = self.agent.before.take().map_or(0, |(_, poll)| poll);
        let after = match mutation {
            Mutation::LooksOnce => before,
            _ => self.doing,
        };
        let activity = match mutation {
            Mutation::LooksOnce => before,
            _ => observe(before, self.reached(), self.advances, after),
        };
        if mutation != Mutation::RaisesLate {
            self.send_raises();
        }
        if poll == 0 && self.agent.reported == Some(activity) {
            return;
        }
        self.agent.reported = Some(activity);
        self.report(activity, poll);
        // Without the mutation there are none by now.
        self.send_raises();
    }

    pub fn report(&mut self, activity: Activity, poll: u32) {
        self.to_coordinator.push_back(FromRank::Report(Report {
            activity,
            seen: self.agent.seen,
            poll,
            sent: self.sent,
            received: self.received,
        }));
    }
}
