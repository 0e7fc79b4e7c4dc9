//! The flow network of a problem: the paper's Figure 2 with switches, shared links and several tiers.
//!
//! ```text
//! source --C_i--> sender i --link--> (switches) --link--> receiver j --S_j--> sink
//!                                               \-------> tier k ---capacity-> sink
//! ```
//!
//! The outer edges are limited by bytes, the inner ones by bandwidth times the blocking time. A switch or tier with a
//! bandwidth of its own is two vertices with an edge of that bandwidth between them. Data flows in pieces of one byte or
//! one chunk.

use crate::flow::{Builder, Network, forward};
use crate::plan::{Plan, PlanBuilder};
use crate::problem::Problem;
use crate::ratio::Seconds;
use crate::topology::{End, Tier, Topology};

pub(crate) const SOURCE: u32 = 0;
pub(crate) const SINK: u32 = 1;

/// The meaning of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    Remainder(usize),
    Spare(usize),
    Capacity(usize),
    Link(u32),
    Switch(usize),
    Tier(usize),
}

/// The limit of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// A number of pieces, whatever the time.
    Pieces(u64),
    /// Bytes per second.
    Bandwidth(u64),
}

pub(crate) struct StagingGraph {
    pub(crate) network: Network<u64>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) meanings: Vec<Meaning>,
    /// The sum of all remainders, in pieces.
    pub(crate) demand: u64,
    /// The bytes in a piece.
    pub(crate) piece: u64,
    /// The current capacity of each edge.
    capacity: Vec<u64>,
}

/// The vertices and edges so far.
struct Assembly {
    builder: Builder,
    limits: Vec<Limit>,
    meanings: Vec<Meaning>,
}

impl Assembly {
    fn edge(&mut self, from: u32, to: u32, limit: Limit, meaning: Meaning) {
        self.builder.edge(from, to);
        self.limits.push(limit);
        self.meanings.push(meaning);
    }

    /// Adds the vertices where data enters and leaves a part that may have a bandwidth of its own.
    fn place(&mut self, bandwidth: Option<u64>, meaning: Meaning) -> (u32, u32) {
        let enter = self.builder.vertex();
        let Some(bandwidth) = bandwidth else {
            return (enter, enter);
        };
        let leave = self.builder.vertex();
        self.edge(enter, leave, Limit::Bandwidth(bandwidth), meaning);
        (enter, leave)
    }

    /// Adds the tiers' vertices, with their edges to the sink.
    fn tiers(&mut self, tiers: &[Tier], demand: u64, piece: u64) -> Vec<u32> {
        let mut entered = Vec::with_capacity(tiers.len());
        for (at, tier) in tiers.iter().enumerate() {
            let (enter, leave) = self.place(tier.bandwidth, Meaning::Tier(at));
            // If a tier never fills, room for the whole demand is enough.
            let room = tier
                .capacity
                .map_or(demand, |capacity| (capacity / piece).min(demand));
            self.edge(leave, SINK, Limit::Pieces(room), Meaning::Capacity(at));
            entered.push(enter);
        }
        entered
    }

    /// Adds the vertices of processes that have room for others, with their edges to the sink.
    fn receivers(&mut self, spare: &[u64], demand: u64, piece: u64) -> Vec<Option<u32>> {
        let receiver = |(at, &spare): (usize, &u64)| {
            let room = Limit::Pieces((spare / piece).min(demand));
            (spare >= piece).then(|| {
                let receiver = self.builder.vertex();
                self.edge(receiver, SINK, room, Meaning::Spare(at));
                receiver
            })
        };
        spare.iter().enumerate().map(receiver).collect()
    }

    /// Adds the links from one place to others with room.
    fn lead(&mut self, topology: &Topology, heads: &Heads, tail: u32, from: End) {
        for &number in topology.outgoing(from) {
            let link = topology.links()[number as usize];
            if let Some(head) = heads.of(link.to) {
                let limit = Limit::Bandwidth(link.bandwidth);
                self.edge(tail, head, limit, Meaning::Link(number));
            }
        }
    }

    /// Builds the graph; all capacities are zero at first.
    fn finished(self, demand: u64, piece: u64) -> StagingGraph {
        let capacity = vec![0; self.limits.len()];
        StagingGraph {
            network: self.builder.build(),
            limits: self.limits,
            meanings: self.meanings,
            demand,
            piece,
            capacity,
        }
    }
}

/// The vertices at the heads of links.
struct Heads {
    /// The vertex of each process, unless it has no room.
    receivers: Vec<Option<u32>>,
    /// The vertices where data enters and leaves each switch.
    switches: Vec<(u32, u32)>,
    tiers: Vec<u32>,
}

impl Heads {
    fn of(&self, end: End) -> Option<u32> {
        match end {
            End::Process(at) => self.receivers[at],
            End::Switch(at) => Some(self.switches[at].0),
            End::Tier(at) => Some(self.tiers[at]),
        }
    }
}

impl StagingGraph {
    /// Builds the graph of a problem; all capacities are zero at first. Remainders are rounded up to whole pieces, room
    /// is rounded down.
    pub(crate) fn new(problem: &Problem<'_>, piece: u64) -> StagingGraph {
        let topology = problem.topology();
        let mut graph = Assembly {
            builder: Builder::new(2),
            limits: Vec::new(),
            meanings: Vec::new(),
        };
        let switches = (topology.switches().iter().enumerate())
            .map(|(at, switch)| graph.place(switch.bandwidth, Meaning::Switch(at)))
            .collect();
        let pieces = |remainder: u64| remainder.div_ceil(piece);
        let demand = problem.remainder().iter().copied().map(pieces).sum();
        let heads = Heads {
            switches,
            tiers: graph.tiers(topology.tiers(), demand, piece),
            receivers: graph.receivers(problem.spare(), demand, piece),
        };
        for (at, &remainder) in problem.remainder().iter().enumerate() {
            if remainder > 0 {
                let sender = graph.builder.vertex();
                let limit = Limit::Pieces(pieces(remainder));
                graph.edge(SOURCE, sender, limit, Meaning::Remainder(at));
                graph.lead(topology, &heads, sender, End::Process(at));
            }
        }
        for (at, &(_, leave)) in heads.switches.iter().enumerate() {
            graph.lead(topology, &heads, leave, End::Switch(at));
        }
        graph.finished(demand, piece)
    }

    /// Returns the capacity of each edge for `time`; edges that `open` leaves out carry nothing.
    fn capacities(
        &self,
        time: Seconds,
        open: impl Fn(Meaning) -> bool,
    ) -> impl Iterator<Item = u64> {
        // Most links of a machine have one of few bandwidths, so the last quotient is nearly always the next one.
        let mut last = (0, 0);
        (self.limits.iter().zip(&self.meanings)).map(move |(&limit, &meaning)| match limit {
            _ if !open(meaning) => 0,
            Limit::Pieces(pieces) => pieces,
            Limit::Bandwidth(bandwidth) => {
                if last.0 != bandwidth {
                    last = (bandwidth, time.pieces_at(bandwidth, self.piece));
                }
                last.1
            }
        })
    }

    /// Sets the capacities for `time`, which must not be shorter than before; the flow stays.
    pub(crate) fn set_time(&mut self, time: Seconds) {
        self.open(time, |_| true);
    }

    /// Does the same as [`StagingGraph::set_time`], but only for edges with a wanted meaning.
    pub(crate) fn open(&mut self, time: Seconds, wanted: impl Fn(Meaning) -> bool) {
        let capacities: Vec<u64> = self.capacities(time, wanted).collect();
        for (edge, capacity) in capacities.into_iter().enumerate() {
            let more = capacity - self.capacity[edge];
            if more > 0 {
                self.network.raise(edge, more);
                self.capacity[edge] = capacity;
            }
        }
    }

    /// Removes all flow.
    pub(crate) fn clear(&mut self) {
        self.network.clear();
        self.capacity.fill(0);
    }

    pub(crate) fn augment(&mut self) -> u64 {
        self.network.augment(SOURCE, SINK)
    }

    /// Splits the flow into transfers. Flow must be conserved; circles in it carry nothing and are left out.
    pub(crate) fn plan(&self, problem: &Problem<'_>) -> Plan {
        let mut left: Vec<u64> = (0..self.network.edges())
            .map(|edge| self.network.flow(edge))
            .collect();
        let mut outgoing = Outgoing::new(self);
        let mut plan = PlanBuilder::new();
        for edge in 0..self.network.edges() {
            if let Meaning::Remainder(sender) = self.meanings[edge] {
                let first = plan.transfers_mut().len();
                while left[edge] > 0 {
                    self.peel(edge, sender, &mut left, &mut outgoing, &mut plan);
                }
                // The last piece need not be full.
                let mut surplus =
                    self.network.flow(edge) * self.piece - problem.remainder()[sender];
                for transfer in &mut plan.transfers_mut()[first..] {
                    let less = surplus.min(transfer.bytes);
                    transfer.bytes -= less;
                    surplus -= less;
                }
                plan.drop_empty(first);
            }
        }
        plan.finish(problem)
    }

    /// Takes one path out of the remaining flow.
    fn peel(
        &self,
        first: usize,
        sender: usize,
        left: &mut [u64],
        outgoing: &mut Outgoing,
        plan: &mut PlanBuilder,
    ) {
        let mut path = vec![first];
        let mut vertex = self.network.ends(first).1;
        while vertex != SINK {
            let edge = outgoing.next(self, vertex, left);
            let head = self.network.ends(edge).1;
            // The path has come back to itself: the circle is taken out, and the path continues from there.
            if let Some(at) = path.iter().position(|&on| self.network.ends(on).1 == head) {
                let circle: Vec<usize> = path.drain(at + 1..).chain([edge]).collect();
                let amount = circle.iter().map(|&edge| left[edge]).min().unwrap_or(0);
                circle.iter().for_each(|&edge| left[edge] -= amount);
            } else {
                path.push(edge);
            }
            vertex = head;
        }
        let amount = path.iter().map(|&edge| left[edge]).min().unwrap_or(0);
        path.iter().for_each(|&edge| left[edge] -= amount);
        let to = match self.meanings[path[path.len() - 1]] {
            Meaning::Spare(at) => End::Process(at),
            Meaning::Capacity(at) => End::Tier(at),
            other => unreachable!("{other:?} does not lead to the sink"),
        };
        let links = path.iter().filter_map(|&edge| match self.meanings[edge] {
            Meaning::Link(link) => Some(link),
            _ => None,
        });
        plan.push(sender, to, amount * self.piece, links);
    }
}

/// For each vertex, the edge that the last path took. The edges before it have no flow left.
struct Outgoing {
    skipped: Vec<u32>,
}

impl Outgoing {
    fn new(graph: &StagingGraph) -> Outgoing {
        Outgoing {
            skipped: vec![0; graph.network.vertices()],
        }
    }

    fn next(&mut self, graph: &StagingGraph, vertex: u32, left: &[u64]) -> usize {
        let skipped = &mut self.skipped[vertex as usize];
        for (arc, _) in graph.network.arcs(vertex).skip(*skipped as usize) {
            if forward(arc) && left[arc / 2] > 0 {
                return arc / 2;
            }
            *skipped += 1;
        }
        unreachable!("flow is conserved")
    }
}
