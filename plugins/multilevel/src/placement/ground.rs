//! Placement on any machine: members with bytes to write, fast tiers that several of them may share, and any network between them.
//!
//! Members are the processes of a [`Topology`]. Its links say how each of them reaches the others and the slow tiers, over however many
//! networks, switches and gateways. The topology here does not give the room on fast tiers, since members share it. They fill it in their
//! order, and the rest belongs to the member that *keeps* the tier, which receives from peers.

use crate::plan::Plan;
use crate::problem::{Problem, ScheduleError};
use crate::schedule::Scheduler;
use crate::topology::{End, Topology};

/// The members' places, and the network between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    topology: Topology,
    /// The fast tier of each member.
    homes: Vec<usize>,
    /// For each fast tier, the member that receives from peers.
    keepers: Vec<usize>,
}

/// The reason why parts make no ground.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GroundError {
    #[error("{homes} members have a fast tier, but the machine has {processes} processes")]
    WrongCount { homes: usize, processes: usize },
    #[error("no member is at fast tier {home}")]
    Nobody { home: usize },
    #[error("member {member} is at fast tier {home}, of {homes}")]
    NoHome {
        member: usize,
        home: usize,
        homes: usize,
    },
}

/// The places of one member's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Portion {
    /// Bytes on its own fast tier.
    pub local: u64,
    /// (fast tier, bytes).
    pub peers: Vec<(usize, u64)>,
    /// (slow tier, bytes).
    pub slow: Vec<(usize, u64)>,
}

impl Portion {
    /// Returns all bytes of the member.
    pub fn total(&self) -> u64 {
        let others = self.peers.iter().chain(&self.slow);
        self.local + others.map(|(_, bytes)| bytes).sum::<u64>()
    }
}

/// The portions of all members, and the plan behind them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Portions by member.
    pub portions: Vec<Portion>,
    /// The plan. Its transfers are the portions' parts, with the links that they cross; its blocking time counts shared
    /// links.
    pub plan: Plan,
}

impl Ground {
    /// Places members at `homes` of `fast_tiers` fast tiers. The first member at each tier keeps it.
    pub fn new(
        topology: Topology,
        homes: Vec<usize>,
        fast_tiers: usize,
    ) -> Result<Ground, GroundError> {
        let processes = topology.processes().len();
        if homes.len() != processes {
            return Err(GroundError::WrongCount {
                homes: homes.len(),
                processes,
            });
        }
        let stray = homes.iter().position(|&home| home >= fast_tiers);
        if let Some(member) = stray {
            return Err(GroundError::NoHome {
                member,
                home: homes[member],
                homes: fast_tiers,
            });
        }
        let keeper = |home| {
            let keeper = homes.iter().position(|&other| other == home);
            keeper.ok_or(GroundError::Nobody { home })
        };
        let keepers = (0..fast_tiers).map(keeper).collect::<Result<_, _>>()?;
        Ok(Ground {
            topology,
            homes,
            keepers,
        })
    }

    /// Gives every member a fast tier of its own.
    pub fn each_its_own(topology: Topology) -> Ground {
        let own: Vec<usize> = (0..topology.processes().len()).collect();
        Ground {
            topology,
            homes: own.clone(),
            keepers: own,
        }
    }

    /// Returns the machine; the room on each fast tier is divided among its members.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns for each fast tier the member that receives from peers.
    pub fn keepers(&self) -> &[usize] {
        &self.keepers
    }

    /// Decides where `bytes` of each member go, when each fast tier has that much `room`.
    pub fn place(
        &self,
        bytes: &[u64],
        room: &[u64],
        scheduler: &dyn Scheduler,
    ) -> Result<Placed, ScheduleError> {
        for (what, given, expected) in [
            ("sizes", bytes.len(), self.homes.len()),
            ("room", room.len(), self.keepers.len()),
        ] {
            if given != expected {
                return Err(ScheduleError::WrongCount {
                    what,
                    sizes: given,
                    processes: expected,
                });
            }
        }
        let topology = self
            .topology
            .clone()
            .with_each_free(self.divide(bytes, room));
        let problem = Problem::new(&topology, bytes)?;
        let plan = scheduler.schedule(&problem)?;
        let mut portions: Vec<Portion> = bytes
            .iter()
            .zip(topology.processes())
            .map(|(&bytes, process)| Portion {
                local: bytes.min(process.free),
                ..Portion::default()
            })
            .collect();
        for transfer in plan.transfers() {
            let portion = &mut portions[transfer.from];
            match transfer.to {
                End::Process(keeper) => portion.peers.push((self.homes[keeper], transfer.bytes)),
                End::Tier(tier) => portion.slow.push((tier, transfer.bytes)),
                End::Switch(_) => {}
            }
        }
        Ok(Placed { portions, plan })
    }

    /// Divides the fast tiers: members take what they need, in their order, as far as it goes. The keeper gets the rest, for peers.
    fn divide(&self, bytes: &[u64], room: &[u64]) -> Vec<u64> {
        let mut left = room.to_vec();
        let part = |(&bytes, &home): (&u64, &usize)| {
            let part = bytes.min(left[home]);
            left[home] -= part;
            part
        };
        let mut free: Vec<u64> = bytes.iter().zip(&self.homes).map(part).collect();
        for (&keeper, left) in self.keepers.iter().zip(left) {
            free[keeper] += left;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Link, Process, Switch, Tier};
    use crate::{Exact, Greedy, LocalOnly, MinTime};

    const MB: u64 = 1_000_000;

    fn process(name: &str) -> Process {
        Process {
            name: name.to_owned(),
            free: 0,
            write: None,
        }
    }

    fn link(from: End, to: End, megabytes: u64) -> Link {
        Link {
            from,
            to,
            bandwidth: megabytes * MB,
        }
    }

    /// Two islands of two nodes each, every island with a switch of its own, one line between the islands, and a file system that only the
    /// second island reaches. Three members share the first node's fast tier.
    fn islands() -> Ground {
        use End::{Process as P, Switch as S, Tier as T};
        let members = ["a0", "a1", "a2", "b", "c", "d"];
        let mut links: Vec<Link> = (0..4).map(|at| link(P(at), S(0), 100)).collect();
        links.extend([link(S(0), P(0), 100), link(S(0), P(3), 100)]);
        for at in [4, 5] {
            links.extend([link(P(at), S(1), 100), link(S(1), P(at), 100)]);
        }
        links.extend([
            link(S(0), S(1), 40),
            link(S(1), S(0), 40),
            link(S(1), T(0), 20),
        ]);
        let island = |name: &str| Switch {
            name: name.to_owned(),
            bandwidth: None,
        };
        let tier = Tier {
            name: "file system".into(),
            capacity: None,
            bandwidth: None,
        };
        let topology = Topology::new(
            "islands",
            members.map(process).into(),
            vec![tier],
            vec![island("first"), island("second")],
            links,
        );
        Ground::new(topology.expect("sound"), vec![0, 0, 0, 1, 2, 3], 4).expect("ground")
    }

    #[test]
    fn two_networks_and_a_line_between_them_are_placed_on_like_one() {
        // a0 and a1 fit, a2 has 100 MB too much; b takes 40 of them, the rest goes over the line: to c, d and the file system.
        let bytes = [50, 50, 120, 0, 0, 0].map(|megabytes| megabytes * MB);
        let room = [120, 40, 30, 10].map(|megabytes| megabytes * MB);
        let placed = islands()
            .place(&bytes, &room, &Exact::default())
            .expect("fits");
        let local: Vec<u64> = placed.portions.iter().map(|part| part.local / MB).collect();
        assert_eq!(local, [50, 50, 20, 0, 0, 0]);
        let (peers, slow) = (&placed.portions[2].peers, &placed.portions[2].slow);
        let to = |home| {
            let parts = peers.iter().filter(|(to, _)| *to == home);
            parts.map(|(_, bytes)| bytes / MB).sum::<u64>()
        };
        let slow: u64 = slow.iter().map(|(_, bytes)| bytes / MB).sum();
        assert_eq!(to(1), 40, "{peers:?}");
        assert_eq!(to(2) + to(3) + slow, 60);
        assert!(slow <= 30, "20 MB/s for a second and a half");
        // The line takes longest: 60 MB at 40 MB/s.
        assert_eq!(placed.plan.blocking_time().as_secs_f64(), 1.5);
    }

    #[test]
    fn every_scheduler_places_on_every_machine() {
        let bytes = [50, 50, 120, 0, 0, 0].map(|megabytes| megabytes * MB);
        let room = [120, 40, 30, 10].map(|megabytes| megabytes * MB);
        let exact = islands()
            .place(&bytes, &room, &Exact::default())
            .expect("fits");
        let others: [&dyn Scheduler; 3] = [&Greedy, &MinTime { chunk: MB }, &LocalOnly];
        for other in others {
            let placed = islands().place(&bytes, &room, other).expect("fits");
            let all: u64 = placed.portions.iter().map(Portion::total).sum();
            assert_eq!(all, 220 * MB, "{}", other.name());
            assert!(
                placed.plan.blocking_time() >= exact.plan.blocking_time(),
                "{}",
                other.name()
            );
        }
    }

    #[test]
    fn what_makes_no_ground_is_named() {
        let topology = || islands().topology().clone();
        let error = |homes, tiers| {
            let ground = Ground::new(topology(), homes, tiers);
            ground.expect_err("no ground").to_string()
        };
        assert_eq!(
            error(vec![0; 5], 1),
            "5 members have a fast tier, but the machine has 6 processes"
        );
        assert_eq!(error(vec![0; 6], 2), "no member is at fast tier 1");
        assert_eq!(
            error(vec![0, 0, 0, 0, 0, 3], 2),
            "member 5 is at fast tier 3, of 2"
        );
        let ground = Ground::each_its_own(topology());
        assert!(ground.place(&[0; 6], &[0; 5], &Exact::default()).is_err());
        assert!(ground.place(&[0; 5], &[0; 6], &Exact::default()).is_err());
    }
}
