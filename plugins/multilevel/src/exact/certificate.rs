//! The proof that no plan can be faster: a cut, in terms of the machine.

use crate::graph::{Limit, Meaning, StagingGraph};
use crate::plan::SharedResource;
use crate::problem::Problem;
use crate::ratio::Seconds;
use crate::topology::{End, Topology};
use crate::units::{show_bandwidth, show_bytes};

/// A set of senders, the places that they can fill on the near side of the cut, and all links that lead out of it.
///
/// The senders' bytes that these places cannot take must cross `shared` in every plan. So no plan is shorter than
/// `(remainder - room) / bandwidth`. [`Bottleneck::verify`] checks this without trusting how it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    pub senders: Vec<usize>,
    /// Places that are full, or could be.
    pub full: Vec<End>,
    pub shared: Vec<SharedResource>,
    /// The sum over all senders.
    pub remainder: u64,
    /// The sum over all full places.
    pub room: u64,
    /// The sum over all of `shared`.
    pub bandwidth: u64,
}

/// The near side of a cut, and the sums of its two kinds of edges.
pub(super) struct Cut {
    pub(super) inside: Vec<bool>,
    /// Pieces that can end on the near side, or that never start on it.
    pub(super) pieces: u64,
    /// Bandwidth out of the near side.
    pub(super) bandwidth: u64,
}

impl Cut {
    /// Makes the cut around the given vertices.
    pub(super) fn around(graph: &StagingGraph, inside: Vec<bool>) -> Cut {
        let (mut pieces, mut bandwidth) = (0u64, 0);
        for edge in crossing(graph, &inside) {
            match graph.limits[edge] {
                Limit::Pieces(more) => pieces = more.saturating_add(pieces),
                Limit::Bandwidth(more) => bandwidth += more,
            }
        }
        Cut {
            inside,
            pieces,
            bandwidth,
        }
    }

    /// Returns the edges that lead out of the near side.
    pub(super) fn edges(&self, graph: &StagingGraph) -> impl Iterator<Item = usize> {
        crossing(graph, &self.inside)
    }

    /// Converts the cut to the terms of the problem. The graph must be one of single bytes.
    pub(super) fn bottleneck(&self, graph: &StagingGraph, problem: &Problem<'_>) -> Bottleneck {
        let mut found = Bottleneck {
            senders: Vec::new(),
            full: Vec::new(),
            shared: Vec::new(),
            remainder: 0,
            room: 0,
            bandwidth: self.bandwidth,
        };
        for (edge, &meaning) in graph.meanings.iter().enumerate() {
            if let Meaning::Remainder(sender) = meaning
                && self.inside[graph.network.ends(edge).1 as usize]
            {
                found.senders.push(sender);
                found.remainder += problem.remainder()[sender];
            }
        }
        for edge in self.edges(graph) {
            match graph.meanings[edge] {
                Meaning::Remainder(_) => {}
                Meaning::Spare(at) => found.full.push(End::Process(at)),
                Meaning::Capacity(at) => found.full.push(End::Tier(at)),
                Meaning::Link(at) => found.shared.push(SharedResource::Link(at as usize)),
                Meaning::Switch(at) => found.shared.push(SharedResource::Switch(at)),
                Meaning::Tier(at) => found.shared.push(SharedResource::Tier(at)),
            }
        }
        found.room = found
            .full
            .iter()
            .filter_map(|&place| problem.room(place))
            .sum();
        found
    }
}

fn crossing(graph: &StagingGraph, inside: &[bool]) -> impl Iterator<Item = usize> {
    (0..graph.limits.len()).filter(|&edge| {
        let (tail, head) = graph.network.ends(edge);
        inside[tail as usize] && !inside[head as usize]
    })
}

impl Bottleneck {
    /// Returns the lower bound for the blocking time of every plan.
    pub fn time(&self) -> Seconds {
        Seconds::new(self.remainder - self.room, self.bandwidth)
    }

    /// Checks the bound using only the problem: without `shared`, the senders reach only full places, and the sums are
    /// right.
    pub fn verify(&self, problem: &Problem<'_>) -> bool {
        let topology = problem.topology();
        let remainder: u64 = self.senders.iter().map(|&at| problem.remainder()[at]).sum();
        let rooms: Option<Vec<u64>> = self.full.iter().map(|&place| problem.room(place)).collect();
        let bandwidth: u64 = self
            .shared
            .iter()
            .map(|&shared| bandwidth_of(topology, shared))
            .sum();
        let sums = (remainder, rooms.map(|rooms| rooms.iter().sum()), bandwidth);
        if sums != (self.remainder, Some(self.room), self.bandwidth)
            || bandwidth == 0
            || self.room > remainder
        {
            return false;
        }
        let mut seen = vec![false; topology.switches().len()];
        let mut open: Vec<End> = self.senders.iter().map(|&at| End::Process(at)).collect();
        while let Some(from) = open.pop() {
            for &number in topology.outgoing(from) {
                let to = topology.links()[number as usize].to;
                if self.shared.contains(&SharedResource::Link(number as usize)) {
                    continue;
                }
                match to {
                    End::Switch(at) if self.shared.contains(&SharedResource::Switch(at)) => {}
                    End::Switch(at) => {
                        if !std::mem::replace(&mut seen[at], true) {
                            open.push(to);
                        }
                    }
                    End::Tier(at) if self.shared.contains(&SharedResource::Tier(at)) => {}
                    place if problem.room(place) == Some(0) || self.full.contains(&place) => {}
                    _ => return false,
                }
            }
        }
        true
    }

    /// Explains the bottleneck in one sentence for people.
    pub fn explain(&self, problem: &Problem<'_>) -> String {
        let topology = problem.topology();
        let senders = list(
            self.senders
                .iter()
                .map(|&at| topology.processes()[at].name.clone()),
        );
        let shared = list(self.shared.iter().map(|shared| shared.name(problem)));
        let have = if self.senders.len() == 1 {
            "has"
        } else {
            "have"
        };
        let amount = show_bytes(self.remainder - self.room);
        let more = if self.full.is_empty() {
            " to send".to_owned()
        } else {
            let full = list(
                self.full
                    .iter()
                    .map(|&place| topology.end_name(place).to_owned()),
            );
            format!(
                " more than the {} that {full} can take",
                show_bytes(self.room)
            )
        };
        let way = if self.shared.len() == 1 {
            "the only way for it is"
        } else {
            "the only ways for it are"
        };
        format!(
            "{senders} {have} {amount}{more}, and {way} {shared}: {amount} at {} take {}",
            show_bandwidth(self.bandwidth),
            self.time()
        )
    }
}

fn bandwidth_of(topology: &Topology, shared: SharedResource) -> u64 {
    match shared {
        SharedResource::Link(at) => topology.links()[at].bandwidth,
        SharedResource::Switch(at) => topology.switches()[at].bandwidth.unwrap_or(0),
        SharedResource::Tier(at) => topology.tiers()[at].bandwidth.unwrap_or(0),
        SharedResource::Local(_) => 0,
    }
}

/// Joins names to `a, b and c`; long lists end in a count.
fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 12;
    let count = names.len();
    let mut names: Vec<String> = names.take(SHOWN).collect();
    if count > SHOWN {
        names.push(format!("{} more", count - SHOWN));
    }
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
