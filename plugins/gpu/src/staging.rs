//! The plan for staging: the place of each byte of the ranks' device memory.
//!
//! A GPU's own free memory comes first, since a copy inside it is faster than any link. The rest goes to peers and to host memory at the
//! same time, as the scheduler decides. Ranks that share a GPU share its room and its links: the plan cuts their ranges on it, one after the
//! other, into parts.

use crate::node::{CopyRoute, GRANULE, Node, StagingPlace};
use stillpoint_ids::Rank;
use stillpoint_multilevel::placement::{Ground, Portion};
use stillpoint_multilevel::problem::ScheduleError;
use stillpoint_multilevel::topology::TopologyError;
use stillpoint_multilevel::{Exact, Greedy, LocalOnly, MinTime, Scheduler, Seconds};

/// A range of device memory of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    pub rank: Rank,
    pub gpu: usize,
    /// The address, for the code that copies; this module does not use it.
    pub address: u64,
    pub bytes: u64,
}

/// The scheduler that assigns bytes to places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduling {
    /// The shortest possible blocking time.
    #[default]
    Exact,
    /// The paper's Algorithm 1.
    Greedy,
    /// The paper's Algorithm 2, in chunks of a thousandth of the bytes that do not fit locally.
    MinTime,
    /// No peers: the rest that does not fit on its own GPU goes to host memory.
    LocalOnly,
}

impl Scheduling {
    /// All schedulers, in the order of all tables.
    pub const ALL: [Scheduling; 4] = [
        Scheduling::LocalOnly,
        Scheduling::Greedy,
        Scheduling::MinTime,
        Scheduling::Exact,
    ];

    fn scheduler(self, left_over: u64) -> Box<dyn Scheduler> {
        match self {
            Scheduling::Exact => Box::new(Exact { chunk: GRANULE }),
            Scheduling::Greedy => Box::new(Greedy),
            Scheduling::MinTime => Box::new(MinTime {
                chunk: (left_over / 1000 / GRANULE).max(1) * GRANULE,
            }),
            Scheduling::LocalOnly => Box::new(LocalOnly),
        }
    }

    /// Returns the name for tables.
    pub fn name(self) -> &'static str {
        self.scheduler(0).name()
    }
}

/// Adjacent bytes of a source that go to one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StagedPart {
    /// The source's number in the list of sources.
    pub source: usize,
    /// The offset in the source.
    pub offset: u64,
    pub bytes: u64,
    pub place: StagingPlace,
    /// The offset in the memory taken of the place.
    pub at: u64,
}

/// The place of every byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Staging {
    /// The parts in the order of the sources, and within a source in the order of its bytes.
    pub parts: Vec<StagedPart>,
    /// The bytes taken of each place, without unused places.
    pub taken: Vec<(StagingPlace, u64)>,
    /// Bytes by each way.
    pub loads: Vec<(CopyRoute, u64)>,
    /// The longest time that any link, uplink or memory takes, by bandwidths alone.
    pub blocking: Seconds,
}

/// The reason why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StagingError {
    #[error("source {source_number} is on GPU {gpu}, of {gpus}")]
    NoGpu {
        source_number: usize,
        gpu: usize,
        gpus: usize,
    },
    #[error("the sources on GPU {gpu} have more than 2^62 bytes")]
    TooLarge { gpu: usize },
    #[error("GPUs: {0}")]
    Topology(#[from] TopologyError),
    #[error("GPUs: {0}")]
    Schedule(#[from] ScheduleError),
}

/// Assigns all sources to places.
pub fn plan(
    node: &Node,
    sources: &[Source],
    scheduling: Scheduling,
) -> Result<Staging, StagingError> {
    let gpus = node.gpus.len();
    let mut bytes = vec![0u64; gpus];
    for (source_number, source) in sources.iter().enumerate() {
        let gpu = source.gpu;
        let sum = bytes.get_mut(gpu).ok_or(StagingError::NoGpu {
            source_number,
            gpu,
            gpus,
        })?;
        let more = sum.checked_add(source.bytes);
        *sum = more.ok_or(StagingError::TooLarge { gpu })?;
    }
    let room: Vec<u64> = (0..gpus)
        .map(|gpu| node.room(StagingPlace::Gpu(gpu)))
        .collect();
    let left_over = bytes.iter().zip(&room);
    let left_over = left_over
        .map(|(bytes, room)| bytes.saturating_sub(*room))
        .fold(0, u64::saturating_add);
    let ground = Ground::each_its_own(node.topology()?);
    let scheduler = scheduling.scheduler(left_over);
    let placed = ground.place(&bytes, &room, &*scheduler)?;
    Ok(cut(sources, &placed.portions, placed.plan.blocking_time()))
}

/// Cuts the sources of every GPU, one after the other, into its portion's parts.
fn cut(sources: &[Source], portions: &[Portion], blocking: Seconds) -> Staging {
    let (mut parts, mut loads) = (Vec::new(), Vec::new());
    let mut taken = Taken::default();
    for (gpu, portion) in portions.iter().enumerate() {
        let mut ranges = sources.iter().enumerate();
        let mut ranges = ranges.by_ref().filter(|(_, source)| source.gpu == gpu);
        let mut current = ranges
            .next()
            .map(|(number, source)| (number, 0, source.bytes));
        for (place, load) in destinations(gpu, portion) {
            loads.push((
                CopyRoute {
                    from: gpu,
                    to: place,
                },
                load,
            ));
            let mut left = load;
            while let (Some((source, offset, rest)), true) = (current, left > 0) {
                let bytes = rest.min(left);
                if bytes > 0 {
                    let at = taken.take(place, bytes);
                    parts.push(StagedPart {
                        source,
                        offset,
                        bytes,
                        place,
                        at,
                    });
                }
                left -= bytes;
                current = match rest - bytes {
                    0 => ranges
                        .next()
                        .map(|(number, source)| (number, 0, source.bytes)),
                    rest => Some((source, offset + bytes, rest)),
                };
            }
        }
    }
    parts.sort_by_key(|part| (part.source, part.offset));
    Staging {
        parts,
        taken: taken.0,
        loads,
        blocking,
    }
}

/// Returns the places and bytes of a GPU's portion: its own memory, peers by number, host memory last.
fn destinations(gpu: usize, portion: &Portion) -> Vec<(StagingPlace, u64)> {
    let mut places = vec![(StagingPlace::Gpu(gpu), portion.local)];
    let peers = portion.peers.iter();
    places.extend(peers.map(|&(peer, bytes)| (StagingPlace::Gpu(peer), bytes)));
    let slow = portion.slow.iter().map(|(_, bytes)| bytes).sum();
    places.push((StagingPlace::Host, slow));
    places[1..].sort_unstable();
    // A scheduler may reach a place by several routes.
    places.dedup_by(|next, first| {
        let same = next.0 == first.0;
        first.1 += if same { next.1 } else { 0 };
        same
    });
    places.retain(|(_, bytes)| *bytes > 0);
    places
}

/// The bytes taken of each place so far.
#[derive(Default)]
struct Taken(Vec<(StagingPlace, u64)>);

impl Taken {
    /// Takes more of a place, and returns where that begins.
    fn take(&mut self, place: StagingPlace, bytes: u64) -> u64 {
        match self.0.iter_mut().find(|(taken, _)| *taken == place) {
            Some((_, taken)) => std::mem::replace(taken, *taken + bytes),
            None => {
                self.0.push((place, bytes));
                0
            }
        }
    }
}

impl Staging {
    /// Returns the bytes taken of a place.
    pub fn taken(&self, place: StagingPlace) -> u64 {
        let taken = self.taken.iter().find(|(taken, _)| *taken == place);
        taken.map_or(0, |(_, bytes)| *bytes)
    }

    /// Counts a rank's bytes in host memory. In the plan of the whole job they join the rank's other bytes to write.
    pub fn host_bytes(&self, sources: &[Source], rank: Rank) -> u64 {
        let of_rank = |part: &&StagedPart| {
            part.place == StagingPlace::Host && sources[part.source].rank == rank
        };
        self.parts
            .iter()
            .filter(of_rank)
            .map(|part| part.bytes)
            .sum()
    }
}

#[cfg(test)]
mod tests;
