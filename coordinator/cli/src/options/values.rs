//! The values that options of a launch take.

use clap::ValueEnum;
use stillpoint_incremental::tracking::Tracking;
use stillpoint_protocol::Span;
use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::launch;

/// When something is done: if it is worth it, in any case, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    On,
    Off,
}

impl From<When> for launch::GpuStaging {
    fn from(when: When) -> launch::GpuStaging {
        match when {
            When::Auto => launch::GpuStaging::Auto,
            When::On => launch::GpuStaging::On,
            When::Off => launch::GpuStaging::Off,
        }
    }
}

/// The interval of periodic checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    Every(Span),
    /// Chosen by the coordinator.
    Auto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SafeState {
    /// The collective clock: next to no cost between checkpoints
    Clock,
    /// The older two-phase commit, for comparison: a barrier before every blocking collective operation, and no checkpoint after
    /// a nonblocking one has begun
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IncrementalOption {
    #[value(alias = "false", alias = "0", alias = "no", alias = "")]
    Off,
    #[value(alias = "true", alias = "1", alias = "yes", alias = "on")]
    Auto,
    Pages,
    Blocks,
}

impl From<IncrementalOption> for Incremental {
    fn from(option: IncrementalOption) -> Incremental {
        match option {
            IncrementalOption::Off => Incremental::Off,
            IncrementalOption::Auto => Incremental::Auto,
            IncrementalOption::Pages => Incremental::Pages,
            IncrementalOption::Blocks => Incremental::Blocks,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrackingOption {
    Auto,
    WpAsync,
    None,
}

impl TrackingOption {
    /// Returns the requested way, or `None` for the best one.
    pub fn wanted(self) -> Option<Tracking> {
        match self {
            TrackingOption::Auto => None,
            TrackingOption::WpAsync => Some(Tracking::WpAsync),
            TrackingOption::None => Some(Tracking::None),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mpi {
    Auto,
    Openmpi,
    Mpich,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MappedFiles {
    /// As `refer`, but keep files that are likely to vanish or change: temporary ones, and files modified since the job began
    Auto,
    /// Leave out unchanged memory; a restart needs the files as they were
    Refer,
    /// Hold every byte; a restart needs none of the files
    Keep,
}

impl From<MappedFiles> for launch::MappedFiles {
    fn from(how: MappedFiles) -> launch::MappedFiles {
        match how {
            MappedFiles::Auto => launch::MappedFiles::Auto,
            MappedFiles::Refer => launch::MappedFiles::Refer,
            MappedFiles::Keep => launch::MappedFiles::Keep,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncFiles {
    Open,
    All,
    Off,
}

impl From<SyncFiles> for launch::SyncFiles {
    fn from(which: SyncFiles) -> launch::SyncFiles {
        match which {
            SyncFiles::Open => launch::SyncFiles::Open,
            SyncFiles::All => launch::SyncFiles::All,
            SyncFiles::Off => launch::SyncFiles::Off,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sockets {
    Refuse,
    Reset,
}

impl From<Sockets> for launch::Sockets {
    fn from(how: Sockets) -> launch::Sockets {
        match how {
            Sockets::Refuse => launch::Sockets::Refuse,
            Sockets::Reset => launch::Sockets::Reset,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnTerm {
    /// End the process, as natively
    End,
    /// Suspend the job
    Suspend,
}
