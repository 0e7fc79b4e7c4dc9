//! What happens when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use stillpoint_clock::rank::{
    Activity, Begin, Finish, Pending, commit_begin, commit_finish, may_park,
};
use stillpoint_clock::safe_state::{self, Report, SafeState};
use stillpoint_clock::steps::Every;
use stillpoint_protocol::agent::{FromAgent, Order, Progress, State, ToAgent};
use stillpoint_protocol::codec;

use super::Times;
use super::layout::{Kind, Layout, Turn};
use super::rank::{Place, Rank};
use crate::random::Numbers;

/// What the way to the still point took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub ranks: u32,
    pub groups: u32,
    /// Orders with a version of their own: the targets, raises, permissions to go on.
    pub orders: u64,
    pub raises: u64,
    pub polls: u64,
    pub advances: u64,
    /// Messages to and from the coordinator, and their bytes.
    pub up: u64,
    pub down: u64,
    pub up_bytes: u64,
    pub down_bytes: u64,
    /// Bytes that the targets would take if every rank got all of them.
    pub whole_tables: u64,
    /// From the request, in seconds; of these the coordinator was busy.
    pub seconds: f64,
    pub busy_seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A computation ends, unless the rank has been stopped in it.
    Arrive {
        rank: u32,
        age: u32,
    },
    /// A collective operation ends.
    Complete {
        group: u32,
    },
    /// An agent looks whether its rank still waits.
    Tick {
        rank: u32,
        age: u32,
    },
    /// The request.
    Request,
    Poll(u32),
    ToRank(u32, Box<Word>),
    FromRank(u32, Box<Said>),
}

/// To an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Begin,
    Targets(u64, Vec<(u64, u64)>),
    Raised(u64, u64, u64),
    Advance(u64),
    Poll(u32),
}

/// From an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Clocks(Vec<(u64, u64)>),
    Raise(u64, u64),
    Report(Activity, u64, u32, [u64; 3]),
}

struct Engine {
    kind: Kind,
    layout: Layout,
    times: Times,
    members: Vec<Vec<u32>>,
    arrived: Vec<u32>,
    ranks: Vec<Rank>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    happened: u64,
    now: u64,
    numbers: Numbers,
    safe: SafeState,
    /// The coordinator handles what has come until then.
    busy_until: u64,
    repeats: u32,
    found: Option<u64>,
    outcome: Outcome,
}

/// Runs a job for a while, asks for a checkpoint and follows it to the still point.
pub fn checkpoint(kind: Kind, ranks: u32, times: Times, seed: u64) -> Outcome {
    let layout = Layout::new(ranks);
    let mut engine = Engine {
        kind,
        members: layout.members(),
        arrived: vec![0; layout.groups() as usize],
        ranks: vec![Rank::new(); ranks as usize],
        events: BinaryHeap::new(),
        happened: 0,
        now: 0,
        numbers: Numbers(seed),
        safe: SafeState::new(ranks as usize),
        busy_until: 0,
        repeats: 0,
        found: None,
        outcome: Outcome {
            ranks,
            groups: layout.groups(),
            ..Outcome::default()
        },
        layout,
        times,
    };
    for rank in 0..ranks {
        engine.compute(rank);
    }
    // Two to three times round the program, so that the groups are at different numbers.
    let request = times.compute * (20 + engine.numbers.draw() % 10);
    engine.at(request, Event::Request);
    while engine.found.is_none() {
        let Some(Reverse((now, _, event))) = engine.events.pop() else {
            panic!("the job stands still before its still point");
        };
        engine.now = now;
        engine.happens(event);
    }
    let found = engine.found.unwrap_or(engine.now);
    engine.outcome.seconds = (found - request) as f64 * 1e-9;
    engine.outcome.orders = engine.safe.version();
    engine.outcome.advances = engine.safe.advances();
    engine.outcome
}

impl Engine {
    fn at(&mut self, time: u64, event: Event) {
        self.happened += 1;
        self.events.push(Reverse((time, self.happened, event)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrive { rank, age } => {
                if self.ranks[rank as usize].age == age {
                    self.arrive(rank);
                }
            }
            Event::Complete { group } => self.complete(group),
            Event::Tick { rank, age } => {
                let it = &self.ranks[rank as usize];
                if it.age == age && it.said != Some(it.activity()) {
                    self.report(rank, 0);
                }
            }
            Event::Request => {
                self.busy_until = self.now;
                for rank in 0..self.layout.ranks {
                    self.send(rank, Word::Begin);
                }
            }
            Event::Poll(poll) => {
                for rank in 0..self.layout.ranks {
                    self.send(rank, Word::Poll(poll));
                }
            }
            Event::ToRank(rank, word) => self.hear(rank, *word),
            Event::FromRank(rank, said) => self.coordinate(rank, *said),
        }
    }

    fn compute(&mut self, rank: u32) {
        let longest = self.times.compute;
        let time = longest / 10 + self.numbers.draw() % (longest - longest / 10);
        let it = &mut self.ranks[rank as usize];
        it.place = Place::Computing;
        it.age += 1;
        let age = it.age;
        self.at(self.now + time, Event::Arrive { rank, age });
    }

    fn turn(&self, rank: u32) -> Turn {
        self.kind.turn(self.ranks[rank as usize].step)
    }

    /// A rank comes to its next call.
    fn arrive(&mut self, rank: u32) {
        let it = &mut self.ranks[rank as usize];
        it.let_on = false;
        it.age += 1;
        if self.turn(rank) == Turn::Exchange {
            return self.exchange(rank);
        }
        self.ranks[rank as usize].place = Place::Before;
        self.decide(rank);
    }

    fn decide(&mut self, rank: u32) {
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
                it.place = Place::Inside;
                it.age += 1;
                if raise {
                    it.cell(turn).target = cell.seq + 1;
                    self.outcome.raises += 1;
                    self.say(rank, Said::Raise(u64::from(group) + 1, cell.seq + 1));
                }
                self.watch(rank);
                self.arrived[group as usize] += 1;
                if self.arrived[group as usize] as usize == self.members[group as usize].len() {
                    self.at(self.now + self.times.collective, Event::Complete { group });
                }
            }
        }
    }

    fn complete(&mut self, group: u32) {
        self.arrived[group as usize] = 0;
        for member in 0..self.members[group as usize].len() {
            let rank = self.members[group as usize][member];
            self.leave(rank);
        }
    }

    /// The end of a call.
    fn leave(&mut self, rank: u32) {
        let it = &mut self.ranks[rank as usize];
        it.place = Place::After;
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
        it.place = Place::Exchanging;
        for other in neighbours {
            // A parked or waiting neighbour pulls it in.
            self.ranks[other as usize].received += 1;
            self.try_to_leave(other);
        }
        self.try_to_leave(rank);
        let it = &self.ranks[rank as usize];
        if it.place == Place::Exchanging && !it.parked {
            self.block(rank);
        }
    }

    fn try_to_leave(&mut self, rank: u32) {
        let it = &self.ranks[rank as usize];
        let mut neighbours = self.layout.neighbours(rank);
        if it.place == Place::Exchanging
            && !it.parked
            && neighbours.all(|other| self.ranks[other as usize].exchanges >= it.exchanges)
        {
            self.leave(rank);
        }
    }

    /// Waits for messages: parks if it may.
    fn block(&mut self, rank: u32) {
        let it = &self.ranks[rank as usize];
        if it.pending == Pending::Targeted && it.reached() {
            self.park(rank);
        } else {
            self.watch(rank);
        }
    }

    fn park(&mut self, rank: u32) {
        let it = &mut self.ranks[rank as usize];
        it.parked = true;
        it.age += 1;
        if it.seen > 0 && it.said != Some(Activity::Parked) {
            self.report(rank, 0);
        }
    }

    /// The agent says that its rank waits, if it still does a little later.
    fn watch(&mut self, rank: u32) {
        let it = &self.ranks[rank as usize];
        if it.pending == Pending::Targeted {
            let age = it.age;
            self.at(self.now + self.times.tick, Event::Tick { rank, age });
        }
    }

    /// An agent gets a word.
    fn hear(&mut self, rank: u32, word: Word) {
        let it = &mut self.ranks[rank as usize];
        match word {
            Word::Begin => {
                it.pending = Pending::Asked;
                let mut clocks = vec![];
                for (cell, turn) in
                    it.cells
                        .iter_mut()
                        .zip([Turn::World, Turn::Row, Turn::Column, Turn::Node])
                {
                    cell.target = cell.seq;
                    clocks.push((u64::from(self.layout.group(rank, turn)) + 1, cell.seq));
                }
                self.say(rank, Said::Clocks(clocks));
            }
            Word::Targets(version, targets) => {
                it.pending = Pending::Targeted;
                for (ggid, target) in targets {
                    self.set_target(rank, ggid, target);
                }
                self.ordered(rank, version);
            }
            Word::Raised(version, ggid, target) => {
                self.set_target(rank, ggid, target);
                self.ordered(rank, version);
            }
            Word::Advance(version) => {
                it.advances += 1;
                self.ordered(rank, version);
            }
            Word::Poll(poll) => self.report(rank, poll),
        }
    }

    fn set_target(&mut self, rank: u32, ggid: u64, target: u64) {
        let turns = [Turn::World, Turn::Row, Turn::Column, Turn::Node];
        for (index, turn) in turns.into_iter().enumerate() {
            if u64::from(self.layout.group(rank, turn)) + 1 == ggid {
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
        } else if !it.parked && may_stop && it.place == Place::Computing && !it.let_on {
            it.parked = true;
            it.age += 1;
        } else if !it.parked && it.place == Place::Before {
            self.decide(rank);
        } else if !it.parked && it.place == Place::Exchanging && it.pending == Pending::Targeted {
            self.block(rank);
        }
        if self.ranks[rank as usize].said.is_none() {
            self.report(rank, 0);
        }
    }

    /// A parked rank goes on from where it stands, let past or because a target is ahead.
    fn go_on(&mut self, rank: u32, advanced: bool) {
        let it = &mut self.ranks[rank as usize];
        if it.place != Place::Before {
            it.advances -= u32::from(advanced);
            it.let_on = advanced;
        }
        match it.place {
            Place::Before => self.decide(rank),
            Place::Exchanging => {
                self.try_to_leave(rank);
                let it = &self.ranks[rank as usize];
                if it.place == Place::Exchanging {
                    self.block(rank);
                }
            }
            _ => self.compute(rank),
        }
    }

    fn report(&mut self, rank: u32, poll: u32) {
        let it = &mut self.ranks[rank as usize];
        let activity = it.activity();
        it.said = Some(activity);
        let counts = [it.sent, it.received, it.begun()];
        let said = Said::Report(activity, it.seen, poll, counts);
        self.say(rank, said);
    }

    /// An agent's word goes to the coordinator.
    fn say(&mut self, rank: u32, said: Said) {
        self.outcome.up += 1;
        self.outcome.up_bytes += said.bytes();
        let word = Event::FromRank(rank, Box::new(said));
        self.at(self.now + self.times.latency, word);
    }

    /// The coordinator's word goes to an agent.
    fn send(&mut self, rank: u32, word: Word) {
        self.outcome.down += 1;
        self.outcome.down_bytes += word.bytes();
        self.works();
        let arrives = self.busy_until + self.times.latency;
        self.at(arrives, Event::ToRank(rank, Box::new(word)));
    }

    /// The coordinator handles one message more.
    fn works(&mut self) {
        self.busy_until = self.busy_until.max(self.now) + self.times.handling;
        self.outcome.busy_seconds += self.times.handling as f64 * 1e-9;
    }

    fn coordinate(&mut self, rank: u32, said: Said) {
        self.works();
        let event = match said {
            Said::Clocks(clocks) => safe_state::Event::Clocks { rank, clocks },
            Said::Raise(ggid, seq) => safe_state::Event::Raise { rank, ggid, seq },
            Said::Report(activity, seen, poll, [sent, received, begun]) => {
                let report = Report {
                    activity,
                    seen,
                    poll,
                    sent,
                    received,
                    begun,
                };
                safe_state::Event::Report { rank, report }
            }
        };
        for action in self.safe.on(event) {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: safe_state::Action) {
        match action {
            safe_state::Action::Targets {
                rank,
                version,
                targets,
            } => {
                if rank == 0 {
                    let all = (1..=u64::from(self.layout.groups())).map(|ggid| (ggid, 99));
                    let table = Word::Targets(version, all.collect());
                    self.outcome.whole_tables = table.bytes() * u64::from(self.layout.ranks);
                }
                self.send(rank, Word::Targets(version, targets));
            }
            safe_state::Action::Raised {
                ranks,
                version,
                ggid,
                target,
            } => {
                self.repeats = 0;
                for rank in ranks {
                    self.send(rank, Word::Raised(version, ggid, target));
                }
            }
            safe_state::Action::Advance { ranks, version } => {
                self.repeats = 0;
                for rank in ranks {
                    self.send(rank, Word::Advance(version));
                }
            }
            safe_state::Action::Poll { poll, patience } => {
                self.outcome.polls += 1;
                let milliseconds = match patience {
                    0 => 1 << self.repeats.min(5),
                    _ => 250 << (patience - 1).min(6),
                };
                self.repeats += u32::from(patience == 0);
                let due = self.busy_until + milliseconds * 1_000_000;
                self.at(due, Event::Poll(poll));
            }
            safe_state::Action::SafeStateFound => self.found = Some(self.busy_until),
        }
    }
}

/// A real group id is 64 bits of a hash: as many bytes as that takes.
fn id(ggid: u64) -> u64 {
    ggid | 1 << 63
}

fn ids(pairs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    pairs.iter().map(|(ggid, seq)| (id(*ggid), *seq)).collect()
}

impl Word {
    fn bytes(&self) -> u64 {
        let order = match self {
            Word::Begin => Order::Begin(stillpoint_protocol::agent::Begin {
                epoch: 1,
                directory: "/scratch/project/run/stillpoint.d/epoch-000001.part".into(),
                image: "/scratch/project/run/stillpoint.d/epoch-000001.part/rank-000001.image"
                    .into(),
                compress: "none".into(),
            }),
            Word::Targets(version, targets) => Order::Targets {
                version: *version,
                targets: ids(targets),
            },
            Word::Raised(version, ggid, target) => Order::Raised {
                version: *version,
                ggid: id(*ggid),
                target: *target,
            },
            Word::Advance(version) => Order::Advance { version: *version },
            Word::Poll(poll) => Order::Poll { poll: *poll },
        };
        frame(&ToAgent::Checkpoint { attempt: 1, order })
    }
}

impl Said {
    fn bytes(&self) -> u64 {
        let progress = match self {
            Said::Clocks(clocks) => Progress::Clocks {
                clocks: ids(clocks),
            },
            Said::Raise(ggid, seq) => Progress::Raise {
                ggid: id(*ggid),
                seq: *seq,
            },
            Said::Report(activity, seen, poll, [sent, received, begun]) => Progress::State(State {
                doing: (*activity).into(),
                seen: *seen,
                poll: *poll,
                sent: *sent,
                received: *received,
                begun: *begun,
            }),
        };
        frame(&FromAgent::Progress {
            attempt: 1,
            progress,
        })
    }
}

fn frame<M: codec::Encode>(message: &M) -> u64 {
    codec::encode(message).map_or(0, |frame| frame.len() as u64)
}
