//! From the sizes of a real checkpoint to who writes what where.
//!
//! Ranks on a node share its fast tier; peers send to the first rank of a node. The rest is the problem that the exact
//! scheduler solves: what a rank has no room for on its own node goes to nodes that have, and to the slow tier at once.
//!
//! With partners, everything on a node's fast tier has a second copy on the next node's. To leave room for these copies,
//! no node is planned to hold more than half of what it and its partner can.

use crate::problem::Problem;
use crate::schedule::Scheduler;
use crate::topology::{End, Link, Process, Switch, Tier, Topology, TopologyError};
use crate::units::show_bytes;
use crate::{Exact, LocalOnly, Plan, ScheduleError};

/// A rank: what it has to write and how fast. Bandwidths are bytes per second; `None`: there is no such way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    pub node: usize,
    pub bytes: u64,
    /// To its own node's fast tier; `None`: never what it waits for.
    pub fast: Option<u64>,
    /// To the slow tier.
    pub slow: Option<u64>,
    /// To and from peers.
    pub peers: Option<u64>,
}

/// What the tiers take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// By node.
    pub fast: Vec<u64>,
    pub slow: u64,
}

/// How to share the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Leave peers out: what does not fit locally goes to the slow tier.
    pub local_only: bool,
    /// Keep a second copy of everything that is on fast tiers.
    pub partners: bool,
}

/// What one rank writes where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Share {
    pub local: u64,
    /// What its node still takes of it, should it turn out larger than it was said to be.
    pub slack: u64,
    /// (node, bytes).
    pub peers: Vec<(usize, u64)>,
    pub slow: u64,
}

/// Everybody's share, and how long the longest takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// By rank.
    pub shares: Vec<Share>,
    /// By node, where each node's second copies go; empty without partners.
    pub partners: Vec<usize>,
    /// The first rank of each node, which takes in what peers send.
    pub hosts: Vec<usize>,
    /// Seconds.
    pub blocking: f64,
}

/// Why there is no placement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlacementError {
    #[error(
        "the images take about {}, the slow tier has room for {}: make room there, or give it a larger capacity",
        show_bytes(*.bytes), show_bytes(*.room)
    )]
    SlowTierFull { bytes: u64, room: u64 },
    #[error(
        "--redundancy partner: all ranks share one fast tier, there is no partner to keep a copy"
    )]
    NoPartner,
    #[error("node {node} has no rank")]
    EmptyNode { node: usize },
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error("{0}")]
    Schedule(#[from] ScheduleError),
}

/// Decides who writes what where.
pub fn place(members: &[Member], room: &Room, rules: Rules) -> Result<Placement, PlacementError> {
    let bytes: u64 = members.iter().map(|member| member.bytes).sum();
    // An epoch becomes durable when all of it is on the slow tier: what will never fit is not begun.
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
    let usable: Vec<u64> = (0..nodes)
        .map(|node| match partners.get(node) {
            Some(&partner) => room.fast[node].min(room.fast[partner]) / 2,
            None => room.fast[node],
        })
        .collect();
    let hosts: Vec<usize> = (0..nodes)
        .map(|node| {
            let host = members.iter().position(|member| member.node == node);
            host.ok_or(PlacementError::EmptyNode { node })
        })
        .collect::<Result<_, _>>()?;
    let free = free(members, &usable, &hosts);
    let topology = topology(members, &free, &hosts, room.slow)?;
    let sizes: Vec<u64> = members.iter().map(|member| member.bytes).collect();
    let problem = Problem::new(&topology, &sizes)?;
    let plan = match rules.local_only {
        true => LocalOnly.schedule(&problem)?,
        false => Exact::default().solve(&problem)?.plan,
    };
    let mut shares = shares(members, &free, &plan);
    leave_slack(members, &usable, &mut shares);
    let blocking = blocking(members, &shares, &partners, &hosts);
    Ok(Placement {
        shares,
        partners,
        hosts,
        blocking,
    })
}

/// Each rank's part of its node's fast tier: what it needs, as far as it goes, in order of rank; what is left over
/// belongs to the node's first rank, for peers.
fn free(members: &[Member], usable: &[u64], hosts: &[usize]) -> Vec<u64> {
    let mut left = usable.to_vec();
    let mut free: Vec<u64> = members
        .iter()
        .map(|member| {
            let part = member.bytes.min(left[member.node]);
            left[member.node] -= part;
            part
        })
        .collect();
    for (&host, left) in hosts.iter().zip(left) {
        free[host] += left;
    }
    free
}

/// The machine as the scheduler sees it: every rank behind a port of its own, into and out of one network.
fn topology(
    members: &[Member],
    free: &[u64],
    hosts: &[usize],
    slow_room: u64,
) -> Result<Topology, TopologyError> {
    let processes = (0..members.len())
        .map(|rank| Process {
            name: format!("rank {rank}"),
            free: free[rank],
            write: members[rank].fast,
        })
        .collect();
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
        if hosts.contains(&rank) {
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
    Topology::new("job", processes, vec![slow], vec![network], links)
}

fn shares(members: &[Member], free: &[u64], plan: &Plan) -> Vec<Share> {
    let mut shares: Vec<Share> = members
        .iter()
        .zip(free)
        .map(|(member, free)| Share {
            local: member.bytes.min(*free),
            ..Share::default()
        })
        .collect();
    for transfer in plan.transfers() {
        let share = &mut shares[transfer.from];
        match transfer.to {
            End::Process(host) => share.peers.push((members[host].node, transfer.bytes)),
            End::Tier(_) => share.slow += transfer.bytes,
            End::Switch(_) => {}
        }
    }
    shares
}

/// Half of what is left over on each node is for those of its ranks that keep everything there.
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

/// Seconds until the busiest way has carried everything, copies included.
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
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn member(node: usize, megabytes: u64) -> Member {
        Member {
            node,
            bytes: megabytes * MB,
            fast: Some(1000 * MB),
            slow: Some(20 * MB),
            peers: Some(60 * MB),
        }
    }

    fn room(fast: &[u64]) -> Room {
        Room {
            fast: fast.iter().map(|megabytes| megabytes * MB).collect(),
            slow: 10_000 * MB,
        }
    }

    #[test]
    fn what_fits_stays_on_its_node() {
        let members = [member(0, 50), member(0, 40), member(1, 100)];
        let placement = place(&members, &room(&[100, 100]), Rules::default()).unwrap();
        let local: Vec<u64> = placement
            .shares
            .iter()
            .map(|share| share.local / MB)
            .collect();
        assert_eq!(local, [50, 40, 100]);
        assert!(
            placement
                .shares
                .iter()
                .all(|share| share.slow == 0 && share.peers.is_empty())
        );
        assert_eq!(placement.blocking, 0.1);
        assert_eq!(placement.hosts, [0, 2]);
        let slack: Vec<u64> = placement
            .shares
            .iter()
            .map(|share| share.slack / MB)
            .collect();
        assert_eq!(slack, [2, 2, 0], "half of the ten that are left on node 0");
    }

    #[test]
    fn a_remainder_is_shared_by_peers_and_the_slow_tier_as_their_bandwidths_are() {
        let members = [member(0, 120), member(1, 20)];
        let placement = place(&members, &room(&[40, 200]), Rules::default()).unwrap();
        assert_eq!(
            placement.shares[0],
            Share {
                local: 40 * MB,
                slack: 0,
                peers: vec![(1, 60 * MB)],
                slow: 20 * MB
            }
        );
        assert_eq!(placement.blocking, 1.0);
        let local_only = Rules {
            local_only: true,
            ..Rules::default()
        };
        let alone = place(&members, &room(&[40, 200]), local_only).unwrap();
        assert_eq!((alone.shares[0].slow, alone.blocking), (80 * MB, 4.0));
    }

    #[test]
    fn with_partners_every_node_has_room_for_what_it_keeps_twice() {
        let members = [member(0, 120), member(1, 20), member(2, 70)];
        let capacities = [100, 160, 90];
        let rules = Rules {
            partners: true,
            ..Rules::default()
        };
        let placement = place(&members, &room(&capacities), rules).unwrap();
        assert_eq!(placement.partners, [1, 2, 0]);
        let mut held = [0; 3];
        for (member, share) in members.iter().zip(&placement.shares) {
            let own = [(member.node, share.local)];
            for (node, bytes) in own.iter().chain(&share.peers) {
                held[*node] += bytes;
                held[placement.partners[*node]] += bytes;
            }
            let placed = share.local + share.slow + share.peers.iter().map(|(_, b)| b).sum::<u64>();
            assert_eq!(placed, member.bytes);
        }
        for (held, capacity) in held.iter().zip(capacities) {
            assert!(*held <= capacity * MB, "{held} of {capacity} MB");
        }
        let one = place(&members[..1], &room(&[100]), rules);
        assert_eq!(one, Err(PlacementError::NoPartner));
    }

    #[test]
    fn what_fits_nowhere_is_refused_in_words() {
        let members = [member(0, 120), member(1, 20)];
        let mut small = room(&[40, 200]);
        small.slow = 100 * MB;
        let error = place(&members, &small, Rules::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("140 MB, the slow tier has room for 100 MB"),
            "{error}"
        );
        // Nothing gets through to the slow tier, and peers have no room: there is a name for that too.
        let mut cut_off = members;
        cut_off[0].slow = None;
        let error = place(&cut_off, &room(&[40, 50]), Rules::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("rank 0 has 80 MB that does not fit"),
            "{error}"
        );
        let mut nowhere = members;
        nowhere[0].slow = Some(0);
        assert!(place(&nowhere, &room(&[40, 50]), Rules::default()).is_err());
    }

    #[test]
    fn an_unreachable_peer_gets_nothing() {
        let mut members = [member(0, 120), member(1, 20)];
        members[1].peers = None;
        let placement = place(&members, &room(&[40, 200]), Rules::default()).unwrap();
        assert_eq!(
            (placement.shares[0].slow, placement.blocking),
            (80 * MB, 4.0)
        );
    }
}
