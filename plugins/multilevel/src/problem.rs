//! One checkpoint to stage: the processes' remainders and spare capacities.

use crate::ratio::Seconds;
use crate::topology::{End, Topology};
use crate::units::{LARGEST, counted, show_bytes, some_of};

/// A topology together with one checkpoint's sizes. Every process first fills its own fast tier.
#[derive(Clone, Debug)]
pub struct Problem<'t> {
    topology: &'t Topology,
    remainder: Vec<u64>,
    spare: Vec<u64>,
    local: Vec<u64>,
}

/// The reason why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error("{what}: {sizes} given for {}", counted(*.processes, "process"))]
    WrongCount {
        /// The list that was given.
        what: &'static str,
        sizes: usize,
        processes: usize,
    },
    #[error("{what}[{process}]: together more than 2^62 bytes")]
    TooLarge { what: &'static str, process: usize },
    #[error("process {process}: has a remainder and spare capacity at once")]
    Both { process: usize },
    #[error("chunk: must be at least one byte")]
    NoChunk,
    #[error(
        "sizes[{first}]: more than the tiers hold: {senders} {have} {} that does not fit on {their} own fast tier, and every place \
         within reach together takes {}; make room for {} more, or add a link to a tier with room",
        show_bytes(*.remainder), show_bytes(*.room), show_bytes(*.remainder - *.room),
        have = if *.count == 1 { "has" } else { "together have" },
        their = if *.count == 1 { "its" } else { "their" },
    )]
    DoesNotFit {
        /// The first of the senders.
        first: usize,
        senders: String,
        count: usize,
        remainder: u64,
        room: u64,
    },
}

impl<'t> Problem<'t> {
    /// Makes a checkpoint of `sizes` bytes, one for each process.
    pub fn new(topology: &'t Topology, sizes: &[u64]) -> Result<Problem<'t>, ScheduleError> {
        let processes = topology.processes();
        if sizes.len() != processes.len() {
            return Err(ScheduleError::WrongCount {
                what: "sizes",
                sizes: sizes.len(),
                processes: processes.len(),
            });
        }
        check_sum("sizes", sizes)?;
        let pairs = || processes.iter().zip(sizes);
        Ok(Problem {
            topology,
            remainder: pairs()
                .map(|(process, &size)| size.saturating_sub(process.free))
                .collect(),
            spare: pairs()
                .map(|(process, &size)| process.free.saturating_sub(size))
                .collect(),
            local: pairs()
                .map(|(process, &size)| size.min(process.free))
                .collect(),
        })
    }

    /// Makes a checkpoint from `C_i` and `S_j` of the paper. The bytes that fit locally are not given.
    pub fn from_remainders(
        topology: &'t Topology,
        remainder: Vec<u64>,
        spare: Vec<u64>,
    ) -> Result<Problem<'t>, ScheduleError> {
        let processes = topology.processes().len();
        for (what, given) in [("remainder", &remainder), ("spare", &spare)] {
            if given.len() != processes {
                return Err(ScheduleError::WrongCount {
                    what,
                    sizes: given.len(),
                    processes,
                });
            }
        }
        check_sum("remainder", &remainder)?;
        check_sum("spare", &spare)?;
        if let Some(process) = (0..processes).find(|&at| remainder[at] > 0 && spare[at] > 0) {
            return Err(ScheduleError::Both { process });
        }
        Ok(Problem {
            topology,
            remainder,
            spare,
            local: vec![0; processes],
        })
    }

    pub fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// Returns `C_i`: the bytes that do not fit on each process's own fast tier.
    pub fn remainder(&self) -> &[u64] {
        &self.remainder
    }

    /// Returns `S_j`: the room for others on each process's fast tier.
    pub fn spare(&self) -> &[u64] {
        &self.spare
    }

    pub fn total_remainder(&self) -> u64 {
        self.remainder.iter().sum()
    }

    /// Returns the processes with a remainder.
    pub fn senders(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.remainder.len()).filter(|&process| self.remainder[process] > 0)
    }

    /// Returns the room of a place: spare capacity of a process, capacity of a tier. Returns `None` if the place never
    /// fills.
    pub fn room(&self, place: End) -> Option<u64> {
        match place {
            End::Process(at) => Some(self.spare[at]),
            End::Tier(at) => self.topology.tiers()[at].capacity,
            End::Switch(_) => Some(0),
        }
    }

    /// Returns the longest local write and its process. No plan is shorter.
    pub fn local_time(&self) -> (Seconds, Option<usize>) {
        let mut longest = (Seconds::ZERO, None);
        for (at, process) in self.topology.processes().iter().enumerate() {
            if let Some(write) = process.write {
                let time = Seconds::new(self.local[at], write);
                if time > longest.0 {
                    longest = (time, Some(at));
                }
            }
        }
        longest
    }

    /// Makes the error for senders without a place for their data.
    pub(crate) fn does_not_fit(&self, senders: &[usize], room: u64) -> ScheduleError {
        let names = senders.iter();
        let names = names.map(|&at| self.topology.processes()[at].name.as_str());
        let remainder = senders.iter().map(|&at| self.remainder[at]).sum();
        ScheduleError::DoesNotFit {
            first: senders.first().copied().unwrap_or(0),
            senders: some_of(names),
            count: senders.len(),
            remainder,
            room,
        }
    }
}

fn check_sum(what: &'static str, sizes: &[u64]) -> Result<(), ScheduleError> {
    let mut sum = 0u64;
    for (process, &size) in sizes.iter().enumerate() {
        sum = sum
            .checked_add(size)
            .filter(|&sum| sum <= LARGEST)
            .ok_or(ScheduleError::TooLarge { what, process })?;
    }
    Ok(())
}
