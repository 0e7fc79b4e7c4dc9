//! The job, the order of its events, and the counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use stillpoint_clock::safe_state::SafeState;

use super::Times;
use super::layout::{Kind, Layout};
use super::rank::Rank;
use super::wire::{AgentInput, AgentReport};
use crate::random::Numbers;

/// The cost of the way to the still point.
#[derive(Clone, Copy, Debug, Default)]
pub struct StillPointCost {
    pub ranks: u32,
    pub groups: u32,
    /// Clocks that the coordinator is told of, each by every rank that has it.
    pub clocks: u64,
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
    /// The time that the coordinator's machine really took, on the computer that simulates, in seconds.
    pub machine_seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
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
    ToRank(u32, Box<AgentInput>),
    FromRank(u32, Box<AgentReport>),
}

pub(super) struct Engine {
    pub(super) kind: Kind,
    pub(super) layout: Layout,
    pub(super) times: Times,
    pub(super) members: Vec<Vec<u32>>,
    pub(super) arrived: Vec<u32>,
    pub(super) ranks: Vec<Rank>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    happened: u64,
    pub(super) now: u64,
    pub(super) numbers: Numbers,
    pub(super) safe: SafeState,
    /// The coordinator handles earlier messages until then.
    pub(super) busy_until: u64,
    pub(super) repeats: u32,
    pub(super) found: Option<u64>,
    pub(super) outcome: StillPointCost,
}

/// Runs a job for a while, asks for a checkpoint and follows it to the still point.
pub fn checkpoint(kind: Kind, ranks: u32, times: Times, seed: u64) -> StillPointCost {
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
        outcome: StillPointCost {
            ranks,
            groups: layout.groups(),
            ..StillPointCost::default()
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
    pub(super) fn at(&mut self, time: u64, event: Event) {
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
                    self.send(rank, AgentInput::Begin);
                }
            }
            Event::Poll(poll) => {
                for rank in 0..self.layout.ranks {
                    self.send(rank, AgentInput::Poll(poll));
                }
            }
            Event::ToRank(rank, word) => self.hear(rank, *word),
            Event::FromRank(rank, said) => self.coordinate(rank, *said),
        }
    }
}
