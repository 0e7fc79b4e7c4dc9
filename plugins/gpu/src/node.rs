//! A node's GPUs as places with room, and the links between them: a topology for the schedulers.

use crate::record::{FROM_HOST, OWN, TO_HOST};
use stillpoint_multilevel::Topology;
use stillpoint_multilevel::topology::{End, Link, Process, Switch, Tier, TopologyError};

/// All bytes are cut at multiples of this. Copy engines like it, and it is small beside any time that counts.
pub const GRANULE: u64 = 4096;

/// Bytes that stay free on every GPU, unless the caller chooses otherwise: the program may allocate during the drain, and the driver
/// may allocate at any time.
pub const MARGIN: u64 = 256 << 20;

/// One GPU. Bandwidths are bytes per second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpu {
    /// The driver's uuid, which is also the name in the record of copies.
    pub uuid: String,
    /// Free bytes, as the driver reports them.
    pub free: u64,
    /// Bandwidth of copies inside its own memory, or `None` if such copies are never the bottleneck.
    pub own: Option<u64>,
    /// Bandwidth to host memory.
    pub host: u64,
}

/// The driver's report about two GPUs, and the measured bandwidth between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub from: usize,
    pub to: usize,
    /// Whether one may write to the other's memory. Otherwise copies go through host memory, and there is no link.
    pub access: bool,
    /// The measured bandwidth. With `None`, the link counts as no faster than the sender's way to host memory, until copies are measured.
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
    /// Bytes that staging may take.
    pub room: u64,
    /// Bandwidth from all GPUs together, or `None` if only their links limit it.
    pub bandwidth: Option<u64>,
}

/// A whole node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub gpus: Vec<Gpu>,
    pub peers: Vec<Peer>,
    pub uplinks: Vec<Uplink>,
    pub host: Host,
    /// Bytes that stay free on every GPU: [`MARGIN`], unless the caller chooses otherwise.
    pub margin: u64,
}

/// A place for staged bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StagingPlace {
    Gpu(usize),
    Host,
}

/// The way from a place with staged memory to the GPU that goes on with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Back {
    pub from: StagingPlace,
    pub to: usize,
}

/// The way from a GPU's memory to a place. A way to the GPU itself is a copy inside its memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CopyRoute {
    pub from: usize,
    pub to: StagingPlace,
}

impl Node {
    /// Returns the bytes of a GPU's or of host memory that staging may take.
    pub fn room(&self, place: StagingPlace) -> u64 {
        let room = match place {
            StagingPlace::Gpu(gpu) => self.gpus[gpu].free.saturating_sub(self.margin),
            StagingPlace::Host => self.host.room,
        };
        room / GRANULE * GRANULE
    }

    /// Returns the bandwidth of a way in bytes per second, or `None` if it is not limited. With zero there is no way.
    pub fn bandwidth(&self, way: CopyRoute) -> Option<u64> {
        match way.to {
            StagingPlace::Host => Some(self.gpus[way.from].host),
            StagingPlace::Gpu(to) if to == way.from => self.gpus[to].own,
            StagingPlace::Gpu(to) => {
                let mut links = self.links();
                let link = links.find(|(from, other, _)| (*from, *other) == (way.from, to));
                Some(link.map_or(0, |(_, _, bandwidth)| bandwidth))
            }
        }
    }

    /// Returns the name of a way in the record of copies.
    pub fn way_name(&self, way: CopyRoute) -> &str {
        match way.to {
            StagingPlace::Host => TO_HOST,
            StagingPlace::Gpu(to) if to == way.from => OWN,
            StagingPlace::Gpu(to) => &self.gpus[to].uuid,
        }
    }

    /// Returns the GPU and the name under which the record of copies has a way back. From a GPU it is the name of the way that was used
    /// for staging.
    pub fn back_name(&self, back: Back) -> (&str, &str) {
        match back.from {
            StagingPlace::Host => (&self.gpus[back.to].uuid, FROM_HOST),
            StagingPlace::Gpu(from) => {
                let to = StagingPlace::Gpu(back.to);
                (&self.gpus[from].uuid, self.way_name(CopyRoute { from, to }))
            }
        }
    }

    /// Returns links between GPUs: from, to, bandwidth.
    fn links(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let open = self.peers.iter().filter(|peer| peer.access);
        let link = |peer: &Peer| {
            let bandwidth = peer.measured.unwrap_or(self.gpus[peer.from].host);
            (peer.from, peer.to, bandwidth)
        };
        open.map(link).filter(|(_, _, bandwidth)| *bandwidth > 0)
    }

    /// Converts the node to a topology: GPUs are its processes, host memory its only tier, shared uplinks its switches.
    /// It excludes the room.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let process = |(at, gpu): (usize, &Gpu)| Process {
            name: format!("GPU {at}"),
            free: 0,
            write: gpu.own,
        };
        let processes = self.gpus.iter().enumerate().map(process).collect();
        let host = Tier {
            name: "host".to_owned(),
            capacity: Some(self.room(StagingPlace::Host)),
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

    /// Converts a topology whose processes are GPUs and whose tiers are host memory: the built-in machines, for tests and for planning
    /// ahead. Returns `None` if GPUs meet in a switch, since peers of a node have direct links.
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
        let way = |from, to| CopyRoute {
            from,
            to: StagingPlace::Gpu(to),
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
        assert_eq!(node.room(StagingPlace::Gpu(0)), 3 * GRANULE);
        node.gpus[0].free = MARGIN - 1;
        assert_eq!(node.room(StagingPlace::Gpu(0)), 0);
    }
}
