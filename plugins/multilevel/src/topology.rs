//! A machine: processes with a fast tier of their own, slower tiers, and the links between them.
//!
//! A [`Topology`] is a directed graph. Data starts at a process, crosses links and switches, and ends in the fast tier of
//! another process or in a slow tier. Every part that several transfers share - a PCIe switch, a port of an NVSwitch, a
//! network card, the gateway of a file system - is either one link that all of them cross, or a switch with a bandwidth
//! of its own. A process forwards nothing: received data stays there.
//!
//! Sizes are bytes, bandwidths bytes per second. Shapes and terms follow section II of Maurya et al., "Towards Efficient
//! I/O Scheduling for Collaborative Multi-Level Checkpointing" (MASCOTS 2021).

mod builtin;
mod file;

pub use file::{FileError, TopologyFile, read_topology};

/// A process, or a node, if all processes of a node share one fast tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    pub name: String,
    /// Free bytes on the fast tier, `F_i` in the paper.
    pub free: u64,
    /// The speed of writes to its own fast tier, or `None` to leave that time out, as the paper does.
    pub write: Option<u64>,
}

/// A slow tier: host memory, a local disk, a shared file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tier {
    pub name: String,
    /// Bytes that it can take, or `None` if it never fills.
    pub capacity: Option<u64>,
    /// Bandwidth from all sides together, or `None` if only the links limit it.
    pub bandwidth: Option<u64>,
}

/// A point where links meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    pub name: String,
    /// Bandwidth of all transfers together, or `None` if only the links limit it.
    pub bandwidth: Option<u64>,
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    Process(usize),
    Tier(usize),
    Switch(usize),
}

/// A directed link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    pub from: End,
    pub to: End,
    pub bandwidth: u64,
}

/// Processes, tiers, switches and links, checked when made and unchanged afterwards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    name: String,
    processes: Vec<Process>,
    tiers: Vec<Tier>,
    switches: Vec<Switch>,
    links: Vec<Link>,
    /// The links that leave each process, then each switch: places in `outgoing`.
    first_outgoing: Vec<u32>,
    outgoing: Vec<u32>,
}

/// The reason why parts do not make a topology. `what` names the field as a user wrote it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopologyError {
    #[error("{what}: a bandwidth must be greater than zero; leave out what is not connected")]
    NoBandwidth { what: String },
    #[error("{what}: larger than 2^62")]
    TooLarge { what: String },
    #[error("link {link}: a slow tier cannot send")]
    FromTier { link: usize },
    #[error("link {link}: leads from a place to itself")]
    Loop { link: usize },
    #[error("link {link}: no such {end}")]
    Dangling { link: usize, end: &'static str },
    #[error("process: there is none")]
    Empty,
}

impl Topology {
    /// Checks the parts and puts them together.
    pub fn new(
        name: impl Into<String>,
        processes: Vec<Process>,
        tiers: Vec<Tier>,
        switches: Vec<Switch>,
        links: Vec<Link>,
    ) -> Result<Topology, TopologyError> {
        check_places(&processes, &tiers, &switches)?;
        for (number, link) in links.iter().enumerate() {
            check_bandwidth(link.bandwidth, || format!("link {number}: bandwidth"))?;
            for end in [link.from, link.to] {
                let (missing, kind) = match end {
                    End::Process(at) => (at >= processes.len(), "process"),
                    End::Tier(at) => (at >= tiers.len(), "tier"),
                    End::Switch(at) => (at >= switches.len(), "switch"),
                };
                if missing {
                    return Err(TopologyError::Dangling {
                        link: number,
                        end: kind,
                    });
                }
            }
            match link.from {
                End::Tier(_) => return Err(TopologyError::FromTier { link: number }),
                from if from == link.to => return Err(TopologyError::Loop { link: number }),
                _ => {}
            }
        }
        let own = switches
            .iter()
            .map(|switch| switch.bandwidth)
            .chain(tiers.iter().map(|tier| tier.bandwidth));
        let all = links.iter().map(|link| link.bandwidth).chain(own.flatten());
        let total: u128 = all.map(u128::from).sum();
        if total > u128::from(crate::units::LARGEST) {
            return Err(TopologyError::TooLarge {
                what: "the sum of all bandwidths".to_owned(),
            });
        }
        let (first_outgoing, outgoing) = index_outgoing(processes.len(), switches.len(), &links);
        Ok(Topology {
            name: name.into(),
            processes,
            tiers,
            switches,
            links,
            first_outgoing,
            outgoing,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the same machine with `free` bytes on every fast tier.
    pub fn with_free(mut self, free: u64) -> Topology {
        for process in &mut self.processes {
            process.free = free;
        }
        self
    }

    /// Returns the same machine with a number of free bytes for each process. There is one for each.
    pub(crate) fn with_each_free(mut self, free: Vec<u64>) -> Topology {
        for (process, free) in self.processes.iter_mut().zip(free) {
            process.free = free;
        }
        self
    }

    /// Returns the numbers of the links that leave a place. No link leaves a tier.
    pub fn outgoing(&self, end: End) -> &[u32] {
        let place = match end {
            End::Process(at) => at,
            End::Switch(at) => self.processes.len() + at,
            End::Tier(_) => return &[],
        };
        &self.outgoing[self.first_outgoing[place] as usize..self.first_outgoing[place + 1] as usize]
    }

    /// Returns the name of a process, tier or switch.
    pub fn end_name(&self, end: End) -> &str {
        match end {
            End::Process(at) => &self.processes[at].name,
            End::Tier(at) => &self.tiers[at].name,
            End::Switch(at) => &self.switches[at].name,
        }
    }

    /// Returns a name such as `G0 -> G4`.
    pub fn link_name(&self, link: usize) -> String {
        let Link { from, to, .. } = self.links[link];
        format!("{} -> {}", self.end_name(from), self.end_name(to))
    }
}

fn check_places(
    processes: &[Process],
    tiers: &[Tier],
    switches: &[Switch],
) -> Result<(), TopologyError> {
    if processes.is_empty() {
        return Err(TopologyError::Empty);
    }
    for process in processes {
        check_size(process.free, || format!("process {}: free", process.name))?;
        if let Some(write) = process.write {
            check_bandwidth(write, || format!("process {}: write", process.name))?;
        }
    }
    for tier in tiers {
        check_size(tier.capacity.unwrap_or(0), || {
            format!("tier {}: capacity", tier.name)
        })?;
        if let Some(bandwidth) = tier.bandwidth {
            check_bandwidth(bandwidth, || format!("tier {}: bandwidth", tier.name))?;
        }
    }
    for switch in switches {
        if let Some(bandwidth) = switch.bandwidth {
            check_bandwidth(bandwidth, || format!("switch {}: bandwidth", switch.name))?;
        }
    }
    Ok(())
}

fn check_bandwidth(bandwidth: u64, what: impl Fn() -> String) -> Result<(), TopologyError> {
    if bandwidth == 0 {
        return Err(TopologyError::NoBandwidth { what: what() });
    }
    check_size(bandwidth, what)
}

fn check_size(bytes: u64, what: impl Fn() -> String) -> Result<(), TopologyError> {
    if bytes > crate::units::LARGEST {
        Err(TopologyError::TooLarge { what: what() })
    } else {
        Ok(())
    }
}

fn index_outgoing(processes: usize, switches: usize, links: &[Link]) -> (Vec<u32>, Vec<u32>) {
    let place = |link: &Link| match link.from {
        End::Process(at) => at,
        End::Switch(at) | End::Tier(at) => processes + at,
    };
    let mut first = vec![0u32; processes + switches + 1];
    for link in links {
        first[place(link) + 1] += 1;
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut next = first.clone();
    let mut outgoing = vec![0u32; links.len()];
    for (number, link) in links.iter().enumerate() {
        let slot = &mut next[place(link)];
        outgoing[*slot as usize] = number as u32;
        *slot += 1;
    }
    (first, outgoing)
}
