//! The ranks' side: they compute, meet in collective operations and exchange messages.

use stillpoint_clock::rank::{Begin, Finish, Pending, commit_begin, commit_finish};
use stillpoint_clock::steps::Every;

use super::engine::{Engine, Event};
use super::layout::Turn;
use super::rank::ProgramPosition;
use super::wire::AgentReport;

impl Engine {
    pub(super) fn compute(&mut self, rank: u32) {
        let longest = self.times.compute;
        let time = longest / 10 + self.numbers.draw() % (longest - longest / 10);
        let it = &mut self.ranks[rank as usize];
        it.place = ProgramPosition::Computing;
        it.age += 1;
        let age = it.age;
        self.at(self.now + time, Event::Arrive { rank, age });
    }

    fn turn(&self, rank: u32) -> Turn {
        self.kind.turn(self.ranks[rank as usize].step)
    }

    /// A rank comes to its next call.
    pub(super) fn arrive(&mut self, rank: u32) {
        let it = &mut self.ranks[rank as usize];
        it.let_on = false;
        it.age += 1;
        if self.turn(rank) == Turn::Exchange {
            return self.exchange(rank);
        }
        self.ranks[rank as usize].place = ProgramPosition::Before;
        self.decide(rank);
    }

    pub(super) fn decide(&mut self, rank: u32) {
        let turn = self.turn(rank);
        let group = self.layout.group(rank, turn);
        let it = &mut self.ranks[rank as usize];
        let (pending, reached, advances) = (it.pending, it.reached(), it.advances);
        let cell = *it.cell(turn);
        match commit_begin::<Every>(pending, reached, advances, cell.seq, cell.target) {
            Begin::AwaitTargets => {}
            Begin::Park => self.park(rank),
            Begin::Go {
                raise,
                uses_advance,
            } => {
                it.advances -= u32::from(uses_advance);
                it.cell(turn).seq += 1;
                it.place = ProgramPosition::Inside;
                it.age += 1;
                if raise {
                    it.cell(turn).target = cell.seq + 1;
                    self.outcome.raises += 1;
                    let clock = self.layout.clock(rank, turn);
                    self.say(rank, AgentReport::Raise(clock, cell.seq + 1));
                }
                self.watch(rank);
                self.arrived[group as usize] += 1;
                if self.arrived[group as usize] as usize == self.members[group as usize].len() {
                    self.at(self.now + self.times.collective, Event::Complete { group });
                }
            }
        }
    }

    pub(super) fn complete(&mut self, group: u32) {
        self.arrived[group as usize] = 0;
        for member in 0..self.members[group as usize].len() {
            let rank = self.members[group as usize][member];
            self.leave(rank);
        }
    }

    /// The end of a call.
    fn leave(&mut self, rank: u32) {
        let it = &mut self.ranks[rank as usize];
        it.place = ProgramPosition::After;
        it.step += 1;
        it.age += 1;
        match commit_finish(it.pending, it.reached(), it.advances) {
            Finish::Park => self.park(rank),
            Finish::Return { uses_advance } => {
                it.advances -= u32::from(uses_advance);
                it.let_on = uses_advance;
                self.compute(rank);
            }
        }
    }

    fn exchange(&mut self, rank: u32) {
        let neighbours: Vec<u32> = self.layout.neighbours(rank).collect();
        let it = &mut self.ranks[rank as usize];
        it.exchanges += 1;
        it.sent += neighbours.len() as u64;
        it.place = ProgramPosition::Exchanging;
        for other in neighbours {
            // A parked or waiting neighbour pulls it in.
            self.ranks[other as usize].received += 1;
            self.try_to_leave(other);
        }
        self.try_to_leave(rank);
        let it = &self.ranks[rank as usize];
        if it.place == ProgramPosition::Exchanging && !it.parked {
            self.block(rank);
        }
    }

    fn try_to_leave(&mut self, rank: u32) {
        let it = &self.ranks[rank as usize];
        let mut neighbours = self.layout.neighbours(rank);
        if it.place == ProgramPosition::Exchanging
            && !it.parked
            && neighbours.all(|other| self.ranks[other as usize].exchanges >= it.exchanges)
        {
            self.leave(rank);
        }
    }

    /// Waits for messages: parks if it may.
    pub(super) fn block(&mut self, rank: u32) {
        let it = &self.ranks[rank as usize];
        if it.pending == Pending::Targeted && it.reached() {
            self.park(rank);
        } else {
            self.watch(rank);
        }
    }

    /// A parked rank goes on from where it stands, because it is let past or because a target is ahead.
    pub(super) fn go_on(&mut self, rank: u32, advanced: bool) {
        let it = &mut self.ranks[rank as usize];
        if it.place != ProgramPosition::Before {
            it.advances -= u32::from(advanced);
            it.let_on = advanced;
        }
        match it.place {
            ProgramPosition::Before => self.decide(rank),
            ProgramPosition::Exchanging => {
                self.try_to_leave(rank);
                let it = &self.ranks[rank as usize];
                if it.place == ProgramPosition::Exchanging {
                    self.block(rank);
                }
            }
            _ => self.compute(rank),
        }
    }
}
