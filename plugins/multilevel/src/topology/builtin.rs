//! Built-in machines.

use super::{End, Link, Process, Switch, Tier, Topology};

const GB: u64 = 1_000_000_000;

/// Bandwidth of one NVLink of the paper's DGX-1, in one direction.
const NVLINK: u64 = 24 * GB;
/// A GPU's link to host memory in the paper.
const PCIE: u64 = 12 * GB;
/// Bandwidth of a DGX-2 GPU into its NVSwitches: six links.
const NVSWITCH_PORT: u64 = 6 * NVLINK;
/// Free fast-tier space of a GPU if it is not given: the middle one of the paper's three sizes.
const GPU_FREE: u64 = 128_000_000;

/// The NVLinks of a DGX-1 with V100, as `nvidia-smi topo -m` shows them: a hybrid cube-mesh in which every GPU has six.
const DGX1_NVLINKS: [(usize, usize, u64); 16] = [
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

impl Topology {
    /// The paper's DGX-1 (its Figure 1): 8 GPUs, single (24 GB/s) and double (48 GB/s) NVLinks, 12 GB/s to host memory each.
    pub fn dgx1() -> Topology {
        let mut links = dgx1_nvlinks();
        links.extend((0..8).map(|gpu| link(End::Process(gpu), End::Tier(0), PCIE)));
        built("dgx1", gpus(8), vec![host()], Vec::new(), links)
    }

    /// The same machine with a detail that the paper leaves out: pairs of GPUs behind one PCIe switch share its 12 GB/s
    /// uplink.
    pub fn dgx1_shared_pcie() -> Topology {
        let mut links = dgx1_nvlinks();
        let switches = (0..4).map(|at| switch(format!("PCIe{at}"))).collect();
        for gpu in 0..8 {
            links.push(link(End::Process(gpu), End::Switch(gpu / 2), PCIE));
        }
        for at in 0..4 {
            links.push(link(End::Switch(at), End::Tier(0), PCIE));
        }
        built("dgx1-shared-pcie", gpus(8), vec![host()], switches, links)
    }

    /// `count` GPUs, each with a port of 144 GB/s into and out of one crossbar, and 12 GB/s to host memory.
    pub fn nvswitch(count: usize) -> Topology {
        let mut links = Vec::with_capacity(3 * count);
        for gpu in 0..count {
            links.push(link(End::Process(gpu), End::Switch(0), NVSWITCH_PORT));
            links.push(link(End::Switch(0), End::Process(gpu), NVSWITCH_PORT));
            links.push(link(End::Process(gpu), End::Tier(0), PCIE));
        }
        built(
            &format!("nvswitch:{count}"),
            gpus(count),
            vec![host()],
            vec![switch("NVSwitch".into())],
            links,
        )
    }

    /// `count` GPUs with a link of 24 GB/s of their own between every two, the all-to-all pattern of the paper's section V.
    pub fn all_to_all(count: usize) -> Topology {
        let mut links = Vec::with_capacity(count * count);
        for from in 0..count {
            for to in (0..count).filter(|&to| to != from) {
                links.push(link(End::Process(from), End::Process(to), NVLINK));
            }
            links.push(link(End::Process(from), End::Tier(0), PCIE));
        }
        built(
            &format!("all-to-all:{count}"),
            gpus(count),
            vec![host()],
            Vec::new(),
            links,
        )
    }

    /// `count` nodes: memory (8 GB free, written at 4 GB/s), a local disk each (2 TB, 1 GB/s), 100 Gbit/s network cards on
    /// one non-blocking switch, and a file system behind a gateway of 5 GB/s.
    pub fn cluster(count: usize) -> Topology {
        const CARD: u64 = 12_500_000_000;
        const GATEWAY: u64 = 5 * GB;
        let processes = (0..count)
            .map(|node| Process {
                name: format!("node{node}"),
                free: 8 * GB,
                write: Some(4 * GB),
            })
            .collect();
        let mut tiers: Vec<Tier> = (0..count)
            .map(|node| Tier {
                name: format!("disk{node}"),
                capacity: Some(2000 * GB),
                bandwidth: None,
            })
            .collect();
        tiers.push(Tier {
            name: "filesystem".into(),
            capacity: None,
            bandwidth: None,
        });
        // A node's card carries the traffic to peers and to the file system alike: both cross the same link.
        let mut links = Vec::with_capacity(3 * count + 1);
        for node in 0..count {
            links.push(link(End::Process(node), End::Tier(node), GB));
            links.push(link(End::Process(node), End::Switch(0), CARD));
            links.push(link(End::Switch(0), End::Process(node), CARD));
        }
        links.push(link(End::Switch(0), End::Tier(count), GATEWAY));
        built(
            &format!("cluster:{count}"),
            processes,
            tiers,
            vec![switch("network".into())],
            links,
        )
    }

    /// The names that [`Topology::named`] understands, for messages.
    pub const NAMES: &str =
        "dgx1, dgx1-shared-pcie, nvswitch:N, all-to-all:N, cluster:N (N up to 4096)";

    /// Returns a built-in machine by its name, or `None` if the name is unknown.
    pub fn named(name: &str) -> Option<Topology> {
        let (kind, count) = match name.split_once(':') {
            Some((kind, count)) => (
                kind,
                Some(
                    count
                        .parse()
                        .ok()
                        .filter(|count| (1..=4096).contains(count))?,
                ),
            ),
            None => (name, None),
        };
        Some(match (kind, count) {
            ("dgx1", None) => Topology::dgx1(),
            ("dgx1-shared-pcie", None) => Topology::dgx1_shared_pcie(),
            ("nvswitch", Some(count)) => Topology::nvswitch(count),
            ("all-to-all", Some(count)) => Topology::all_to_all(count),
            ("cluster", Some(count)) => Topology::cluster(count),
            _ => return None,
        })
    }
}

fn dgx1_nvlinks() -> Vec<Link> {
    DGX1_NVLINKS
        .iter()
        .flat_map(|&(a, b, count)| {
            let (a, b) = (End::Process(a), End::Process(b));
            [link(a, b, count * NVLINK), link(b, a, count * NVLINK)]
        })
        .collect()
}

fn gpus(count: usize) -> Vec<Process> {
    (0..count)
        .map(|gpu| Process {
            name: format!("G{gpu}"),
            free: GPU_FREE,
            write: None,
        })
        .collect()
}

fn host() -> Tier {
    Tier {
        name: "host".into(),
        capacity: None,
        bandwidth: None,
    }
}

fn switch(name: String) -> Switch {
    Switch {
        name,
        bandwidth: None,
    }
}

fn link(from: End, to: End, bandwidth: u64) -> Link {
    Link {
        from,
        to,
        bandwidth,
    }
}

fn built(
    name: &str,
    processes: Vec<Process>,
    tiers: Vec<Tier>,
    switches: Vec<Switch>,
    links: Vec<Link>,
) -> Topology {
    Topology::new(name, processes, tiers, switches, links)
        .expect("a built-in topology is well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_of_the_dgx1_has_six_nvlinks_and_the_papers_example_its_bandwidths() {
        let dgx1 = Topology::dgx1();
        for gpu in 0..8 {
            let out: u64 = dgx1
                .outgoing(End::Process(gpu))
                .iter()
                .map(|&at| dgx1.links()[at as usize].bandwidth)
                .sum();
            assert_eq!(out, 6 * NVLINK + PCIE);
        }
        let bandwidth = |from, to| {
            let wanted = (End::Process(from), End::Process(to));
            dgx1.links()
                .iter()
                .find(|link| (link.from, link.to) == wanted)
                .map(|link| link.bandwidth)
        };
        assert_eq!(bandwidth(0, 4), Some(48 * GB));
        assert_eq!(bandwidth(0, 1), Some(24 * GB));
        assert_eq!(bandwidth(6, 4), Some(24 * GB));
        assert_eq!(bandwidth(6, 1), None);
    }

    #[test]
    fn built_in_machines_are_found_by_their_names() {
        for name in [
            "dgx1",
            "dgx1-shared-pcie",
            "nvswitch:16",
            "all-to-all:16",
            "cluster:4",
        ] {
            assert_eq!(Topology::named(name).expect(name).name(), name);
        }
        for name in [
            "dgx2",
            "nvswitch",
            "nvswitch:0",
            "nvswitch:many",
            "dgx1:8",
            "cluster:99999",
        ] {
            assert_eq!(Topology::named(name), None, "{name}");
        }
    }
}
