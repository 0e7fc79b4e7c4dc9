//! A node's GPUs as places with room, and the links between them: what the schedulers call a topology.

use crate::record::{FROM_HOST, OWN, TO_HOST};
use stillpoint_multilevel::Topology;
use stillpoint_multilevel::topology::{End, Link, Process, Switch, Tier, TopologyError};

/// Everything is cut at multiples of this: what a copy engine likes, and small beside any time that counts.
pub const GRANULE: u64 = 4096;

/// What stays free on every GPU, unless something else is asked for: the program may allocate while what is staged is drained, and the
/// driver allocates when it pleases.
pub const MARGIN: u64 = 256 << 20;

/// One GPU. Bandwidths are bytes per second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpu {
    /// As the driver says it; the record of copies knows it by this name.
    pub uuid: String,
    /// What the driver says is free on it.
    pub free: u64,
    /// Copies inside its own memory; `None`: never what anybody waits for.
    pub own: Option<u64>,
    /// To host memory.
    pub host: u64,
}

/// What the driver says of two GPUs, and what was measured between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub from: usize,
    pub to: usize,
    /// Whether one may write to the other's memory. Without it a copy goes by host memory, and there is no link.
    pub access: bool,
    /// `None`: nobody has measured it. Then it counts as no faster than the sender's way to host memory, which measured copies will correct.
    pub measured: Option<u64>,
}

/// A way to host memory that several GPUs share, such as a PCIe switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uplink {
    pub gpus: Vec<usize>,
    pub bandwidth: u64,
}

/// Pinned host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Host {
    /// What staging may take of it.
    pub room: u64,
    /// From all GPUs together; `None` where only their links limit it.
    pub bandwidth: Option<u64>,
}

/// All of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub gpus: Vec<Gpu>,
    pub peers: Vec<Peer>,
    pub uplinks: Vec<Uplink>,
    pub host: Host,
    /// What stays free on every GPU: [`MARGIN`], unless something else is asked for.
    pub margin: u64,
}

/// Where staged bytes lie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    Gpu(usize),
    Host,
}

/// From a place where something is staged to the GPU that goes on with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Back {
    pub from: Place,
    pub to: usize,
}

/// From a GPU's memory to a place. To the GPU itself is a copy inside its memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Way {
    pub from: usize,
    pub to: Place,
}

impl Node {
    /// What staging may take of a GPU's memory, or of the host's.
    pub fn room(&self, place: Place) -> u64 {
        let room = match place {
            Place::Gpu(gpu) => self.gpus[gpu].free.saturating_sub(self.margin),
            Place::Host => self.host.room,
        };
        room / GRANULE * GRANULE
    }

    /// Bytes per second by a way; `None` where nothing limits it. There is none where zero.
    pub fn bandwidth(&self, way: Way) -> Option<u64> {
        match way.to {
            Place::Host => Some(self.gpus[way.from].host),
            Place::Gpu(to) if to == way.from => self.gpus[to].own,
            Place::Gpu(to) => {
                let mut links = self.links();
                let link = links.find(|(from, other, _)| (*from, *other) == (way.from, to));
                Some(link.map_or(0, |(_, _, bandwidth)| bandwidth))
            }
        }
    }

    /// What the record of copies calls a way of a GPU.
    pub fn way_name(&self, way: Way) -> &str {
        match way.to {
            Place::Host => TO_HOST,
            Place::Gpu(to) if to == way.from => OWN,
            Place::Gpu(to) => &self.gpus[to].uuid,
        }
    }

    /// The GPU that the record of copies has a way back under, and what it calls it. From a GPU it is the way that something is staged by.
    pub fn back_name(&self, back: Back) -> (&str, &str) {
        match back.from {
            Place::Host => (&self.gpus[back.to].uuid, FROM_HOST),
            Place::Gpu(from) => {
                let to = Place::Gpu(back.to);
                (&self.gpus[from].uuid, self.way_name(Way { from, to }))
            }
        }
    }

    /// Links between GPUs: from, to, bandwidth.
    fn links(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let open = self.peers.iter().filter(|peer| peer.access);
        let link = |peer: &Peer| {
            let bandwidth = peer.measured.unwrap_or(self.gpus[peer.from].host);
            (peer.from, peer.to, bandwidth)
        };
        open.map(link).filter(|(_, _, bandwidth)| *bandwidth > 0)
    }

    /// GPUs are its processes, host memory its only tier, shared uplinks its switches. Room is no part of it.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let process = |(at, gpu): (usize, &Gpu)| Process {
            name: format!("GPU {at}"),
            free: 0,
            write: gpu.own,
        };
        let processes = self.gpus.iter().enumerate().map(process).collect();
        let host = Tier {
            name: "host".to_owned(),
            capacity: Some(self.room(Place::Host)),
            bandwidth: self.host.bandwidth,
        };
        let switch = |(at, uplink): (usize, &Uplink)| Switch {
            name: format!("uplink {at}"),
            bandwidth: Some(uplink.bandwidth),
        };
        let switches = self.uplinks.iter().enumerate().map(switch).collect();
        let between = self.links().map(|(from, to, bandwidth)| Link {
            from: End::Process(from),
            to: End::Process(to),
            bandwidth,
        });
        let mut links: Vec<Link> = between.collect();
        for (at, gpu) in self.gpus.iter().enumerate().filter(|(_, gpu)| gpu.host > 0) {
            let shared = |uplink: &Uplink| uplink.gpus.contains(&at);
            let to = match self.uplinks.iter().position(shared) {
                Some(uplink) => End::Switch(uplink),
                None => End::Tier(0),
            };
            links.push(Link {
                from: End::Process(at),
                to,
                bandwidth: gpu.host,
            });
        }
        links.extend(self.uplinks.iter().enumerate().map(|(at, uplink)| Link {
            from: End::Switch(at),
            to: End::Tier(0),
            bandwidth: uplink.bandwidth,
        }));
        Topology::new("node", processes, vec![host], switches, links)
    }

    /// The GPUs, links and shared uplinks of a topology whose processes are GPUs and whose tiers are host memory: the built-in machines, for
    /// tests and for planning ahead. `None` where GPUs meet in a switch, which peers' links of a node do not.
    pub fn of(topology: &Topology, host: Host, margin: u64) -> Option<Node> {
        let mut node = Node {
            gpus: Vec::new(),
            peers: Vec::new(),
            uplinks: Vec::new(),
            host,
            margin,
        };
        for process in topology.processes() {
            node.gpus.push(Gpu {
                uuid: process.name.clone(),
                free: process.free.checked_add(margin)?,
                own: process.write,
                host: 0,
            });
        }
        for _ in topology.switches() {
            node.uplinks.push(Uplink {
                gpus: Vec::new(),
                bandwidth: 0,
            });
        }
        for link in topology.links() {
            match (link.from, link.to) {
                (End::Process(from), End::Process(to)) => node.peers.push(Peer {
                    from,
                    to,
                    access: true,
                    measured: Some(link.bandwidth),
                }),
                (End::Process(from), End::Tier(_)) => node.gpus[from].host = link.bandwidth,
                (End::Process(from), End::Switch(at)) => {
                    node.gpus[from].host = link.bandwidth;
                    node.uplinks[at].gpus.push(from);
                }
                (End::Switch(at), End::Tier(_)) => node.uplinks[at].bandwidth = link.bandwidth,
                _ => return None,
            }
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Host = Host {
        room: 1 << 40,
        bandwidth: None,
    };

    #[test]
    fn a_machine_of_gpus_is_the_same_there_and_back() {
        let uplinks = [(Topology::dgx1(), 0), (Topology::dgx1_shared_pcie(), 4)];
        for (machine, uplinks) in uplinks {
            let node = Node::of(&machine, HOST, 0).expect("GPUs and a host");
            assert_eq!((node.gpus.len(), node.uplinks.len()), (8, uplinks));
            let again = node.topology().expect("sound");
            assert_eq!(again.links().len(), machine.links().len());
            let total = |topology: &Topology| -> u64 {
                topology.links().iter().map(|link| link.bandwidth).sum()
            };
            assert_eq!(total(&again), total(&machine));
        }
        assert_eq!(Node::of(&Topology::nvswitch(4), HOST, 0), None);
    }

    #[test]
    fn peers_without_access_have_no_link_and_unmeasured_ones_are_no_faster_than_the_host() {
        let mut node = Node::of(&Topology::dgx1(), HOST, 0).expect("GPUs and a host");
        let way = |from, to| Way {
            from,
            to: Place::Gpu(to),
        };
        assert_eq!(node.bandwidth(way(0, 4)), Some(48_000_000_000));
        assert_eq!(node.bandwidth(way(6, 1)), Some(0), "there is none");
        for peer in &mut node.peers {
            peer.measured = None;
            peer.access = peer.from != 0;
        }
        assert_eq!(node.bandwidth(way(0, 4)), Some(0));
        assert_eq!(node.bandwidth(way(4, 0)), Some(12_000_000_000));
        let open = node.peers.iter().filter(|peer| peer.access).count();
        assert!((1..node.peers.len()).contains(&open));
        let links = node.topology().expect("sound").links().len();
        assert_eq!(links, open + node.gpus.len());
    }

    #[test]
    fn a_margin_stays_free_and_room_is_whole_granules() {
        let mut node = Node::of(&Topology::dgx1(), HOST, 0).expect("GPUs and a host");
        (node.gpus[0].free, node.margin) = (MARGIN + 3 * GRANULE + 17, MARGIN);
        assert_eq!(node.room(Place::Gpu(0)), 3 * GRANULE);
        node.gpus[0].free = MARGIN - 1;
        assert_eq!(node.room(Place::Gpu(0)), 0);
    }
}
