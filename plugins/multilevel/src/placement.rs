//! From the sizes of a real checkpoint to the ranks' writes: their bytes and places.
//!
//! Ranks on a node share its fast tier; peers send to the first rank of a node; one network connects them all. That is one case of a
//! [`Ground`], on which members, fast tiers and links may be placed in any way. The exact scheduler solves the rest: bytes without
//! room on their rank's own node go to other nodes with room and to the slow tier at the same time.
//!
//! With partners, everything on a node's fast tier has a second copy on the next node's. A byte then takes room in two places and
//! time on two ways at once, which a flow cannot express, so the exact scheduler cannot see the copies. This module takes them into
//! account around it. No node is planned to hold more than half of what it and its partner can. Several shares of that half are
//! tried, down to none, and the one with the shortest blocking time, copies included, is chosen. The plan keeps every capacity, and
//! its time is right. It may not be the shortest one if nodes could give up different shares, since all give up the same share.

mod ground;

pub use ground::{Ground, GroundError, Placed, Portion};

use crate::schedule::Scheduler;
use crate::topology::{End, Link, Process, Switch, Tier, Topology, TopologyError};
use crate::units::show_bytes;
use crate::{Exact, LocalOnly, ScheduleError};

/// A rank: the bytes that it has to write, and its bandwidths in bytes per second. A bandwidth is `None` if there
/// is no such way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    pub node: usize,
    pub bytes: u64,
    /// To its own node's fast tier, or `None` if the rank never waits for it.
    pub fast: Option<u64>,
    /// To the slow tier.
    pub slow: Option<u64>,
    /// To and from peers.
    pub peers: Option<u64>,
}

/// The room on the tiers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TierRoom {
    /// Room by node.
    pub fast: Vec<u64>,
    pub slow: u64,
}

/// The rules for sharing the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Leave peers out: what does not fit locally goes to the slow tier.
    pub local_only: bool,
    /// Keep a second copy of everything that is on fast tiers.
    pub partners: bool,
}

/// The places of one rank's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Share {
    pub local: u64,
    /// More bytes that its node can take, if the image becomes larger than predicted.
    pub slack: u64,
    /// (node, bytes).
    pub peers: Vec<(usize, u64)>,
    pub slow: u64,
}

/// The shares of all ranks, and the longest time among them.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// Shares by rank.
    pub shares: Vec<Share>,
    /// The node of each node's second copies; empty without partners.
    pub partners: Vec<usize>,
    /// The first rank of each node, which receives from peers.
    pub hosts: Vec<usize>,
    /// Seconds.
    pub blocking: f64,
}

/// The reason why there is no placement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlacementError {
    #[error(
        "the images take about {}, but the slow tier has room for {}: make room there, or give it a larger capacity",
        show_bytes(*.bytes), show_bytes(*.room)
    )]
    SlowTierFull { bytes: u64, room: u64 },
    #[error(
        "--redundancy partner: all ranks share one fast tier, there is no partner to keep a copy"
    )]
    NoPartner,
    #[error(transparent)]
    Ground(#[from] GroundError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error("{0}")]
    Schedule(#[from] ScheduleError),
}

/// Decides where each rank writes its bytes.
pub fn place(
    members: &[Member],
    room: &TierRoom,
    rules: Rules,
) -> Result<Placement, PlacementError> {
    let bytes: u64 = members.iter().map(|member| member.bytes).sum();
    // An epoch becomes durable when all of it is on the slow tier, so an epoch that cannot fit is not begun.
    if bytes > room.slow {
        return Err(PlacementError::SlowTierFull {
            bytes,
            room: room.slow,
        });
    }
    let nodes = room.fast.len();
    if rules.partners && nodes < 2 {
        return Err(PlacementError::NoPartner);
    }
    let partners: Vec<usize> = match rules.partners {
        true => (0..nodes).map(|node| (node + 1) % nodes).collect(),
        false => vec![],
    };
    let task = Task {
        members,
        ground: network(members, nodes, room.slow)?,
        partners,
    };
    if !rules.partners {
        return task.place(&room.fast, rules);
    }
    let half = |node: usize| room.fast[node].min(room.fast[task.partners[node]]) / 2;
    let whole: Vec<u64> = (0..nodes).map(half).collect();
    let mut best = task.place(&whole, rules)?;
    for share in 0..STEPS {
        let part: Vec<u64> = whole.iter().map(|bytes| bytes / STEPS * share).collect();
        // Without a place for the rest, this share has no plan.
        if let Ok(placement) = task.place(&part, rules)
            && placement.blocking < best.blocking
        {
            best = placement;
        }
    }
    Ok(best)
}

/// The number of shares that are tried for the room of partners' copies.
const STEPS: u64 = 64;

/// The inputs that all plans have in common.
struct Task<'a> {
    members: &'a [Member],
    ground: Ground,
    partners: Vec<usize>,
}

impl Task<'_> {
    /// Returns the shares if no node holds more than `usable`, without copies.
    fn place(&self, usable: &[u64], rules: Rules) -> Result<Placement, PlacementError> {
        let members = self.members;
        let sizes: Vec<u64> = members.iter().map(|member| member.bytes).collect();
        let scheduler: &dyn Scheduler = match rules.local_only {
            true => &LocalOnly,
            false => &Exact { chunk: 1 },
        };
        let placed = self.ground.place(&sizes, usable, scheduler)?;
        let mut shares: Vec<Share> = placed.portions.into_iter().map(Share::from).collect();
        leave_slack(members, usable, &mut shares);
        let hosts = self.ground.keepers().to_vec();
        let blocking = blocking(members, &shares, &self.partners, &hosts);
        Ok(Placement {
            shares,
            partners: self.partners.clone(),
            hosts,
            blocking,
        })
    }
}

/// This ground has only one slow tier.
impl From<Portion> for Share {
    fn from(portion: Portion) -> Share {
        Share {
            local: portion.local,
            slack: 0,
            peers: portion.peers,
            slow: portion.slow.iter().map(|(_, bytes)| bytes).sum(),
        }
    }
}

/// Builds one network with a port of its own for every rank, in and out.
fn network(members: &[Member], nodes: usize, slow_room: u64) -> Result<Ground, PlacementError> {
    let processes = (0..members.len())
        .map(|rank| Process {
            name: format!("rank {rank}"),
            free: 0,
            write: members[rank].fast,
        })
        .collect();
    let first_of_node = |rank: usize| {
        let node = members[rank].node;
        members[..rank].iter().all(|member| member.node != node)
    };
    let mut links = vec![];
    for (rank, member) in members.iter().enumerate() {
        let here = End::Process(rank);
        let mut link = |from, to, bandwidth: Option<u64>| {
            if let Some(bandwidth) = bandwidth {
                links.push(Link {
                    from,
                    to,
                    bandwidth,
                });
            }
        };
        link(here, End::Tier(0), member.slow);
        link(here, End::Switch(0), member.peers);
        if first_of_node(rank) {
            link(End::Switch(0), here, member.peers);
        }
    }
    let slow = Tier {
        name: "slow tier".into(),
        capacity: Some(slow_room.min(crate::units::LARGEST)),
        bandwidth: None,
    };
    let network = Switch {
        name: "network".into(),
        bandwidth: None,
    };
    let topology = Topology::new("job", processes, vec![slow], vec![network], links)?;
    let homes = members.iter().map(|member| member.node).collect();
    Ok(Ground::new(topology, homes, nodes)?)
}

/// Divides half of the room left over on each node among those of its ranks that keep everything there.
fn leave_slack(members: &[Member], usable: &[u64], shares: &mut [Share]) {
    let keeps_all = |share: &Share| share.peers.is_empty() && share.slow == 0;
    for (node, usable) in usable.iter().enumerate() {
        let own = members.iter().zip(&*shares);
        let own = own
            .filter(|(member, _)| member.node == node)
            .map(|(_, share)| share.local);
        let others = shares.iter().flat_map(|share| &share.peers);
        let others = others
            .filter(|(to, _)| *to == node)
            .map(|(_, bytes)| *bytes);
        let left = usable - own.chain(others).sum::<u64>().min(*usable);
        let here = || (0..members.len()).filter(|rank| members[*rank].node == node);
        let keeping: Vec<usize> = here().filter(|rank| keeps_all(&shares[*rank])).collect();
        for rank in &keeping {
            shares[*rank].slack = left / 2 / keeping.len() as u64;
        }
    }
}

/// Returns the seconds until the busiest way has carried everything, copies included.
fn blocking(members: &[Member], shares: &[Share], partners: &[usize], hosts: &[usize]) -> f64 {
    let mut writes = vec![0u64; members.len()];
    let mut sends = vec![0u64; members.len()];
    let mut takes = vec![0u64; members.len()];
    let mut longest = 0f64;
    for (rank, (member, share)) in members.iter().zip(shares).enumerate() {
        let own = (share.local > 0).then_some((member.node, share.local));
        for (node, bytes) in own.into_iter().chain(share.peers.iter().copied()) {
            for holder in [Some(node), partners.get(node).copied()]
                .into_iter()
                .flatten()
            {
                if holder == member.node {
                    writes[rank] += bytes;
                } else {
                    sends[rank] += bytes;
                    takes[hosts[holder]] += bytes;
                }
            }
        }
        longest = longest.max(seconds(share.slow, member.slow));
    }
    for (rank, member) in members.iter().enumerate() {
        longest = longest
            .max(seconds(writes[rank], member.fast))
            .max(seconds(sends[rank], member.peers))
            .max(seconds(takes[rank], member.peers));
    }
    longest
}

fn seconds(bytes: u64, bandwidth: Option<u64>) -> f64 {
    bandwidth.map_or(0.0, |bandwidth| bytes as f64 / bandwidth as f64)
}

#[cfg(test)]
mod tests;
