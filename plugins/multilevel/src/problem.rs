//! One checkpoint to stage: who has a remainder, who has spare capacity.

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

/// Why there is no plan.
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
    /// A checkpoint of `sizes` bytes, one per process.
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

    /// A checkpoint given by what is left over, `C_i` and `S_j` of the paper: nothing is said about what fits locally.
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

    /// `C_i`: what does not fit on each process's own fast tier.
    pub fn remainder(&self) -> &[u64] {
        &self.remainder
    }

    /// `S_j`: what each process's fast tier still takes from others.
    pub fn spare(&self) -> &[u64] {
        &self.spare
    }

    pub fn total_remainder(&self) -> u64 {
        self.remainder.iter().sum()
    }

    /// The processes with a remainder.
    pub fn senders(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.remainder.len()).filter(|&process| self.remainder[process] > 0)
    }

    /// What a place takes: spare capacity of a process, capacity of a tier. `None` where it never fills.
    pub fn room(&self, place: End) -> Option<u64> {
        match place {
            End::Process(at) => Some(self.spare[at]),
            End::Tier(at) => self.topology.tiers()[at].capacity,
            End::Switch(_) => Some(0),
        }
    }

    /// The longest local write, and whose it is; no plan is shorter.
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

    /// The error for senders whose data has nowhere to go.
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
