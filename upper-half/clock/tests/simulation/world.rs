//! A job of ranks, agents and a coordinator, step by step in any order.
//!
//! Ranks and agents run the crate's own decisions; what is modelled here is what surrounds them: memory
//! that a rank and its agent share (sequentially consistent, as after the membarrier), channels that keep
//! their order, messages on the wire, and collective operations that are as synchronizing as MPI
//! allows: nobody leaves before everybody has come.

use stillpoint_clock::drain::{self, Drain};
use stillpoint_clock::rank::{Activity, Pending};
use stillpoint_clock::safe_state::{Action, Event, SafeState};

use crate::rank::{Agent, FromRank, Rank, Step, ToRank};

/// One operation of a rank's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Compute,
    Collective(usize),
    /// Starts a nonblocking collective operation.
    Start(usize),
    /// Waits for the n-th operation of a group, which this rank has started.
    Wait(usize, u64),
    Send(usize),
    Receive(usize),
}

/// What a test leaves out, to see that it is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    None,
    /// A rank that goes past a target keeps it to itself.
    NoRaise,
    /// Parked ranks are never let on.
    NoAdvance,
    /// The agent looks at the driver's state before it looks at the targets, and not again.
    LooksOnce,
    /// A report counts whatever order it crossed.
    StaleReports,
    /// Clocks are read before the flag is set.
    ReadsBeforeFlag,
    /// A report may overtake the raise of what the rank did before.
    RaisesLate,
}

#[derive(Debug)]
enum Coordinator {
    Idle,
    Seeking(SafeState),
    Draining(Drain),
}

pub struct World {
    pub ranks: Vec<Rank>,
    /// On the wire, by source and destination.
    wire: Vec<Vec<u64>>,
    coordinator: Coordinator,
    /// Checkpoints still to be asked for.
    pub wanted: u32,
    pub done: u32,
    mutation: Mutation,
}

impl World {
    pub fn new(
        programs: Vec<Vec<Op>>,
        groups: &[Vec<usize>],
        wanted: u32,
        mutation: Mutation,
    ) -> World {
        let size = programs.len();
        let ranks = programs.into_iter().enumerate().map(|(rank, program)| {
            let member = groups.iter().map(|group| group.contains(&rank)).collect();
            Rank::new(program, member, size)
        });
        World {
            ranks: ranks.collect(),
            wire: vec![vec![0; size]; size],
            coordinator: Coordinator::Idle,
            wanted,
            done: 0,
            mutation,
        }
    }

    /// Whether everything has come to its end.
    pub fn ended(&self) -> bool {
        let idle = matches!(self.coordinator, Coordinator::Idle);
        idle && self.wanted == 0
            && self.ranks.iter().all(|rank| {
                rank.at == rank.program.len()
                    && rank.pending == Pending::No
                    && rank.from_coordinator.is_empty()
            })
    }

    /// How far the ranks have come, for whoever has to understand a failure.
    pub fn in_words(&self) -> String {
        let rank = |rank: &Rank| {
            let next = rank.program.get(rank.at);
            format!(
                "{next:?} {:?} {:?} {:?} seq {:?} target {:?} advances {}",
                rank.step, rank.doing, rank.pending, rank.seq, rank.target, rank.advances
            )
        };
        let ranks: Vec<String> = self.ranks.iter().map(rank).collect();
        format!("{}\n{:?}", ranks.join("\n"), self.coordinator)
    }

    /// Lets one actor, chosen by `choice`, take a step, unless it is `asleep`. An error is a broken
    /// promise.
    pub fn step(&mut self, choice: u64, asleep: u64) -> Result<(), String> {
        let size = self.ranks.len() as u64;
        let rank = (choice / 8 % size) as usize;
        // Actors by kind (rank, agent, channel to the coordinator) and rank.
        let kind = [0, 0, 0, 1, 1, 2, 2, 3][(choice % 8) as usize];
        if asleep >> (16 * kind + rank as u64) & 1 == 1 && kind < 3 {
            return Ok(());
        }
        match choice % 8 {
            0..3 => self.rank_step(rank),
            3 | 4 => self.agent_step(rank),
            5 | 6 => return self.coordinator_step(rank),
            _ => self.request(choice / 8 / size),
        }
        Ok(())
    }

    fn request(&mut self, choice: u64) {
        if matches!(self.coordinator, Coordinator::Idle)
            && self.wanted > 0
            && choice.is_multiple_of(16)
        {
            self.wanted -= 1;
            self.coordinator = Coordinator::Seeking(SafeState::new(self.ranks.len()));
            self.broadcast(&ToRank::Begin);
        }
    }

    fn broadcast(&mut self, order: &ToRank) {
        for rank in &mut self.ranks {
            rank.from_coordinator.push_back(order.clone());
        }
    }

    /// What is on the wire for a rank comes in.
    fn pull(&mut self, rank: usize) {
        for source in 0..self.ranks.len() {
            let count = std::mem::take(&mut self.wire[source][rank]);
            self.ranks[rank].mailbox[source] += count;
            self.ranks[rank].received += count;
        }
    }

    fn rank_step(&mut self, number: usize) {
        let everybody_came = |world: &World, group: usize, seq: u64| {
            world
                .ranks
                .iter()
                .all(|rank| !rank.member[group] || rank.entered(group) >= seq)
        };
        if self.ranks[number].doing == Activity::Parked {
            self.pull(number);
            self.ranks[number].wake_if_needed();
            return;
        }
        let rank = &self.ranks[number];
        let Some(op) = rank.program.get(rank.at).copied() else {
            self.ranks[number].stop_if_reached();
            return;
        };
        match (rank.step, op) {
            (Step::Leaving, _) => self.ranks[number].leave(),
            // The stop signal finds a rank in the application.
            (Step::Before, _) if self.ranks[number].stop_if_reached() => {}
            (Step::Before, Op::Compute) => self.ranks[number].next(),
            (Step::Before, Op::Send(to)) => {
                self.ranks[number].sent += 1;
                self.wire[number][to] += 1;
                self.ranks[number].step = Step::Leaving;
            }
            (Step::Before, Op::Receive(from)) => {
                self.pull(number);
                let rank = &mut self.ranks[number];
                match rank.mailbox[from] {
                    0 => rank.doing = Activity::Waiting,
                    _ => {
                        rank.mailbox[from] -= 1;
                        rank.doing = Activity::Running;
                        rank.step = Step::Leaving;
                    }
                }
            }
            (Step::Before, Op::Wait(group, seq)) => {
                let complete = everybody_came(self, group, seq);
                self.pull(number);
                let rank = &mut self.ranks[number];
                match complete {
                    true => {
                        rank.doing = Activity::Running;
                        rank.step = Step::Leaving;
                    }
                    false => rank.doing = Activity::Waiting,
                }
            }
            (Step::Before, Op::Collective(group) | Op::Start(group)) => {
                let rank = &mut self.ranks[number];
                rank.seq[group] += 1;
                rank.step = Step::Incremented;
            }
            (Step::Incremented, Op::Collective(group) | Op::Start(group)) => {
                let rank = &mut self.ranks[number];
                if rank.pending == Pending::No {
                    rank.enter(op);
                } else {
                    rank.seq[group] -= 1;
                    rank.step = Step::Deciding;
                }
            }
            (Step::Deciding, Op::Collective(group) | Op::Start(group)) => {
                let silent = self.mutation == Mutation::NoRaise;
                self.ranks[number].decide(op, group, silent);
            }
            (Step::Inside, Op::Collective(group)) => {
                if everybody_came(self, group, self.ranks[number].seq[group]) {
                    let rank = &mut self.ranks[number];
                    rank.doing = Activity::Running;
                    rank.step = Step::Leaving;
                }
            }
            (step, op) => unreachable!("{step:?} in {op:?}"),
        }
    }

    fn agent_step(&mut self, number: usize) {
        let mutation = self.mutation;
        let rank = &mut self.ranks[number];
        if rank.agent.clocks_due {
            rank.agent.clocks_due = false;
            rank.send_clocks();
            rank.agent.flag_due = mutation == Mutation::ReadsBeforeFlag;
            return;
        }
        if rank.agent.flag_due {
            rank.agent.flag_due = false;
            rank.pending = Pending::Asked;
            return;
        }
        if let Some((before, _)) = rank.agent.before {
            rank.look_again(before, mutation);
            return;
        }
        match rank.from_coordinator.pop_front() {
            None => {
                if mutation != Mutation::RaisesLate {
                    rank.send_raises();
                }
                if rank.pending == Pending::Targeted {
                    rank.agent.before = Some((rank.doing, 0));
                }
            }
            Some(ToRank::Begin) => {
                if mutation != Mutation::ReadsBeforeFlag {
                    rank.pending = Pending::Asked;
                }
                rank.agent = Agent {
                    clocks_due: true,
                    ..Agent::default()
                };
            }
            Some(ToRank::Targets(version, targets)) => {
                for (ggid, target) in targets {
                    rank.target[ggid as usize] = target * u64::from(rank.member[ggid as usize]);
                }
                rank.pending = Pending::Targeted;
                rank.ordered(version);
            }
            Some(ToRank::Raised(version, ggid, target)) => {
                let group = ggid as usize;
                if rank.member[group] {
                    rank.target[group] = rank.target[group].max(target);
                }
                rank.ordered(version);
            }
            Some(ToRank::Advance(version, passes)) => {
                rank.advances += passes;
                rank.ordered(version);
            }
            Some(ToRank::Poll(poll)) => rank.agent.before = Some((rank.doing, poll)),
            Some(ToRank::Drain(round)) => {
                let (sent, received) = (rank.sent, rank.received);
                rank.to_coordinator
                    .push_back(FromRank::Counts(round, sent, received));
            }
            Some(ToRank::Release) => {
                rank.pending = Pending::No;
                rank.advances = 0;
                rank.agent = Agent::default();
                rank.wake_if_needed();
            }
        }
    }

    fn coordinator_step(&mut self, number: usize) -> Result<(), String> {
        let Some(message) = self.ranks[number].to_coordinator.pop_front() else {
            return Ok(());
        };
        let rank = number as u32;
        match (&mut self.coordinator, message) {
            (Coordinator::Seeking(job), FromRank::Clocks(clocks)) => {
                let actions = job.on(Event::Clocks { rank, clocks });
                self.carry_out(actions)
            }
            (Coordinator::Seeking(job), FromRank::Raise(ggid, seq)) => {
                let actions = job.on(Event::Raise { rank, ggid, seq });
                self.carry_out(actions)
            }
            (Coordinator::Seeking(job), FromRank::Report(mut report)) => {
                if self.mutation == Mutation::StaleReports {
                    report.seen = job.version();
                }
                let actions = job.on(Event::Report { rank, report });
                self.carry_out(actions)
            }
            (Coordinator::Draining(drain), FromRank::Counts(round, sent, received)) => {
                match drain.counts(number, round, sent, received) {
                    Some(drain::Action::Round { round }) => self.broadcast(&ToRank::Drain(round)),
                    Some(drain::Action::Drained) => {
                        self.check_drained()?;
                        self.coordinator = Coordinator::Idle;
                        self.done += 1;
                        self.broadcast(&ToRank::Release);
                    }
                    Some(action) => return Err(format!("{action:?}")),
                    None => {}
                }
                Ok(())
            }
            // Words of before the safe state, or a rank that noticed something late.
            (_, FromRank::Report(_) | FromRank::Raise(..)) => Ok(()),
            (coordinator, message) => Err(format!("{message:?} in {coordinator:?}")),
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) -> Result<(), String> {
        for action in actions {
            match action {
                Action::Targets { version, targets } => {
                    self.broadcast(&ToRank::Targets(version, targets));
                }
                Action::Raised {
                    version,
                    ggid,
                    target,
                } => self.broadcast(&ToRank::Raised(version, ggid, target)),
                Action::Poll { poll } => self.broadcast(&ToRank::Poll(poll)),
                Action::Advance { version, ranks } => {
                    let none = self.mutation == Mutation::NoAdvance;
                    for (number, rank) in (0u32..).zip(&mut self.ranks) {
                        let passes = u32::from(ranks.contains(&number) && !none);
                        rank.from_coordinator
                            .push_back(ToRank::Advance(version, passes));
                    }
                }
                Action::SafeStateFound => {
                    self.check_safe_state()?;
                    let drain = Drain::new(self.ranks.len());
                    self.broadcast(&ToRank::Drain(drain.round()));
                    self.coordinator = Coordinator::Draining(drain);
                }
            }
        }
        Ok(())
    }

    /// Invariants 1 and 2 of the paper (section 4.1).
    fn check_safe_state(&self) -> Result<(), String> {
        for (number, rank) in self.ranks.iter().enumerate() {
            if rank.doing != Activity::Parked {
                return Err(format!("rank {number} is not parked"));
            }
            if rank.step == Step::Inside {
                return Err(format!("rank {number} is inside a collective operation"));
            }
        }
        for group in 0..self.ranks[0].seq.len() {
            let mut entered = self
                .ranks
                .iter()
                .filter(|r| r.member[group])
                .map(|r| r.entered(group));
            let first = entered.next().unwrap_or(0);
            if entered.any(|seq| seq != first) {
                return Err(format!(
                    "an operation of group {group} has not been begun by all"
                ));
            }
        }
        Ok(())
    }

    fn check_drained(&self) -> Result<(), String> {
        self.check_safe_state()?;
        match self.wire.iter().flatten().sum::<u64>() {
            0 => Ok(()),
            count => Err(format!("{count} messages are on the wire")),
        }
    }
}
