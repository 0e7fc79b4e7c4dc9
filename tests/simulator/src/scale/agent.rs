//! A rank's agent: it carries orders out and says what it sees.

use stillpoint_clock::rank::{Activity, Pending, may_park};

use super::engine::{Engine, Event};
use super::layout::TURNS;
use super::rank::ProgramPosition;
use super::wire::{AgentInput, AgentReport};

impl Engine {
    /// An agent gets a word.
    pub(super) fn hear(&mut self, rank: u32, word: AgentInput) {
        let it = &mut self.ranks[rank as usize];
        match word {
            AgentInput::Begin => {
                it.pending = Pending::Asked;
                let mut clocks: Vec<(u64, u64)> = vec![];
                for (cell, turn) in it.cells.iter_mut().zip(TURNS) {
                    cell.target = cell.seq;
                    clocks.push((self.layout.clock(rank, turn), cell.seq));
                }
                clocks.extend(self.layout.idle_clocks(rank).map(|ggid| (ggid, 0)));
                self.outcome.clocks += clocks.len() as u64;
                self.say(rank, AgentReport::Clocks(clocks));
            }
            AgentInput::Targets(version, targets) => {
                it.pending = Pending::Targeted;
                for (ggid, target) in targets {
                    self.set_target(rank, ggid, target);
                }
                self.ordered(rank, version);
            }
            AgentInput::Raised(version, ggid, target) => {
                self.set_target(rank, ggid, target);
                self.ordered(rank, version);
            }
            AgentInput::Advance(version) => {
                it.advances += 1;
                self.ordered(rank, version);
            }
            AgentInput::Poll(poll) => self.report(rank, poll),
        }
    }

    fn set_target(&mut self, rank: u32, ggid: u64, target: u64) {
        for (index, turn) in TURNS.into_iter().enumerate() {
            if self.layout.clock(rank, turn) == ggid {
                let cell = &mut self.ranks[rank as usize].cells[index];
                cell.target = target.max(cell.target);
            }
        }
    }

    /// An order has been applied: the rank goes on or stops, and the agent says what it does.
    fn ordered(&mut self, rank: u32, version: u64) {
        let it = &mut self.ranks[rank as usize];
        it.seen = version;
        it.said = None;
        let reached = it.reached();
        let may_stop = may_park(it.pending, reached, it.advances);
        if it.parked && !may_stop {
            it.parked = false;
            self.go_on(rank, reached);
        } else if !it.parked && may_stop && it.place == ProgramPosition::Computing && !it.let_on {
            it.parked = true;
            it.age += 1;
        } else if !it.parked && it.place == ProgramPosition::Before {
            self.decide(rank);
        } else if !it.parked
            && it.place == ProgramPosition::Exchanging
            && it.pending == Pending::Targeted
        {
            self.block(rank);
        }
        if self.ranks[rank as usize].said.is_none() {
            self.report(rank, 0);
        }
    }

    pub(super) fn park(&mut self, rank: u32) {
        let it = &mut self.ranks[rank as usize];
        it.parked = true;
        it.age += 1;
        if it.seen > 0 && it.said != Some(Activity::Parked) {
            self.report(rank, 0);
        }
    }

    /// The agent says that its rank waits, if it still does a little later.
    pub(super) fn watch(&mut self, rank: u32) {
        let it = &self.ranks[rank as usize];
        if it.pending == Pending::Targeted {
            let age = it.age;
            self.at(self.now + self.times.tick, Event::Tick { rank, age });
        }
    }

    pub(super) fn report(&mut self, rank: u32, poll: u32) {
        let it = &mut self.ranks[rank as usize];
        let activity = it.activity();
        it.said = Some(activity);
        let counts = [it.sent, it.received, it.begun()];
        let said = AgentReport::Report(activity, it.seen, poll, counts);
        self.say(rank, said);
    }

    /// An agent's word goes to the coordinator.
    pub(super) fn say(&mut self, rank: u32, said: AgentReport) {
        self.outcome.up += 1;
        self.outcome.up_bytes += said.bytes();
        let word = Event::FromRank(rank, Box::new(said));
        self.at(self.now + self.times.latency, word);
    }
}
