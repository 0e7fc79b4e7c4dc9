//! Options that `run` and `restart` share: they are the launch's, not the image's.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nix::sys::signal::Signal;
use stillpoint_protocol::launch;

use stillpoint_incremental::tracking::Tracking;
use stillpoint_multilevel::units::parse_bytes;

use super::tiers::TierOptions;
use super::units::parse_duration;
use super::{Failure, batch};
use crate::job::{self, Copies};
use crate::server::BatchJob;
use stillpoint_protocol::agent::Incremental;

#[derive(Clone, Debug, Args)]
pub struct LaunchOptions {
    /// Name of the job, to be used as TARGET [default: the application's]
    #[arg(long, env = "STILLPOINT_NAME", value_parser = parse_name)]
    pub name: Option<String>,

    /// Write an epoch every so often (90s, 30m, 2h)
    #[arg(long, env = "STILLPOINT_INTERVAL", value_name = "TIME", value_parser = parse_duration)]
    pub interval: Option<Duration>,

    /// Committed epochs to keep; those that they need stay too
    #[arg(long, env = "STILLPOINT_KEEP", value_name = "K", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,

    /// How images are compressed: none, lz4 or zstd[:level]
    #[arg(long, env = "STILLPOINT_COMPRESS", value_name = "HOW", default_value = "lz4",
          value_parser = parse_compression)]
    pub compress: String,

    /// Files that the program has mapped: leave to them what it has not changed, or hold it in the images
    #[arg(
        long,
        env = "STILLPOINT_MAPPED_FILES",
        value_name = "HOW",
        default_value = "auto"
    )]
    pub mapped_files: MappedFiles,

    /// Whether the application runs on while its images are written, and what it changes meanwhile is copied: auto does where there is room for
    /// the copies, on does in any case, off never
    #[arg(
        long,
        env = "STILLPOINT_COPY",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub copy: Copy,

    /// Most memory for these copies, each rank (4GiB, 500MB); what is beyond it is written before the application runs on [default: half of what
    /// is free, shared by the ranks of a node]
    #[arg(long, env = "STILLPOINT_COPY_MEMORY", value_name = "BYTES", value_parser = parse_bytes)]
    pub copy_memory: Option<u64>,

    /// Write only what has changed since the epoch before, which is kept as long as it is needed
    ///
    /// pages: every page that was written to; blocks: of those the blocks that differ from what was there; auto: the faster of the two by
    /// what the last epochs have taken; off: every epoch is whole
    #[arg(long, env = "STILLPOINT_INCREMENTAL", value_name = "HOW", default_value = "off", num_args = 0..=1,
          require_equals = true, default_missing_value = "auto")]
    pub incremental: IncrementalOption,

    /// Whether memory that is equal is written once: in a rank, and in all ranks of a node. auto does so without --tier; on with tiers too,
    /// but then in each rank alone; off never
    #[arg(
        long,
        env = "STILLPOINT_DEDUP",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub dedup: Dedup,
    /// How --incremental knows what has been written to
    ///
    /// wp-async: the kernel keeps track of it (Linux 6.7); none: all memory is hashed, as far as that is faster than writing it; auto: the first
    /// of them that this machine has, as `stillpoint check` shows
    #[arg(
        long,
        env = "STILLPOINT_TRACKING",
        value_name = "HOW",
        default_value = "auto"
    )]
    tracking: TrackingOption,

    /// Whether memory of GPUs is staged: copied to other GPUs and host memory while the application stands still, and from there into the
    /// image. auto does where the driver offers it and there is room; on refuses a checkpoint otherwise; off takes it by way of the ranks' memory
    #[arg(
        long,
        env = "STILLPOINT_GPU_STAGING",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub gpu_staging: GpuStaging,

    /// Whether a suspend of a job with --incremental writes an epoch while the application runs, and then what has changed since: auto does
    /// where that makes the stop shorter, as far as earlier epochs tell
    #[arg(
        long,
        env = "STILLPOINT_PRECOPY",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub precopy: Precopy,

    /// Carry on before all memory has been read: what is touched first is read first. A part of an image that cannot be read then ends
    /// the job later; its epoch is as it was
    #[arg(long, env = "STILLPOINT_LAZY")]
    pub lazy: bool,

    /// The MPI that the application was built for
    #[arg(
        long,
        env = "STILLPOINT_MPI",
        value_name = "MPI",
        default_value = "auto"
    )]
    pub mpi: Mpi,

    /// The MPI library to run on, where it is not the launcher's own: one with the standard's ABI (libmpi_abi.so.1)
    #[arg(long, env = "STILLPOINT_MPI_LIBRARY", value_name = "FILE")]
    pub mpi_library: Option<PathBuf>,

    /// What SIGTERM means, unless the application handles it itself
    #[arg(
        long,
        env = "STILLPOINT_ON_TERM",
        value_name = "WHAT",
        default_value = "end"
    )]
    pub on_term: OnTerm,

    /// The signal that means suspend, unless the application handles it itself
    #[arg(long, env = "STILLPOINT_SUSPEND_SIGNAL", value_name = "SIG", default_value = "USR1",
          value_parser = parse_signal)]
    pub suspend_signal: i32,

    /// Exit status after a suspend [default: 75 where a batch system is seen (SLURM_JOB_ID, PBS_JOBID, LSB_JOBID), else 0]
    #[arg(long, env = "STILLPOINT_SUSPENDED_STATUS", value_name = "N")]
    suspended_status: Option<u8>,

    /// After a suspend, have Slurm start the batch job again (scontrol requeue)
    #[arg(long, env = "STILLPOINT_REQUEUE")]
    requeue: bool,

    /// A group, by name or number, whose members may ask for a suspend of this job, and for nothing else
    #[arg(long, env = "STILLPOINT_OPERATORS", value_name = "GROUP")]
    pub operators: Option<String>,

    #[command(flatten)]
    pub tiers: TierOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SafeState {
    /// The collective clock: no cost to speak of while the job computes
    Clock,
    /// The older two-phase commit, for comparison: a barrier before every blocking collective operation, and no checkpoint once
    /// the program has begun a nonblocking one
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
enum TrackingOption {
    Auto,
    WpAsync,
    None,
}

impl TrackingOption {
    /// `None`: whatever is the best.
    fn wanted(self) -> Option<Tracking> {
        match self {
            TrackingOption::Auto => None,
            TrackingOption::WpAsync => Some(Tracking::WpAsync),
            TrackingOption::None => Some(Tracking::None),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Copy {
    Auto,
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Precopy {
    Auto,
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dedup {
    Auto,
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GpuStaging {
    Auto,
    On,
    Off,
}

impl From<GpuStaging> for launch::GpuStaging {
    fn from(how: GpuStaging) -> launch::GpuStaging {
        match how {
            GpuStaging::Auto => launch::GpuStaging::Auto,
            GpuStaging::On => launch::GpuStaging::On,
            GpuStaging::Off => launch::GpuStaging::Off,
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
    /// As `refer`, but keep files that are likely to go away or to change: temporary ones, and those that have been written to since the
    /// job began
    Auto,
    /// A restart maps them again: they have to be there as they were, or it is refused
    Refer,
    /// The images hold every byte of them: a restart needs none
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
pub enum OnTerm {
    /// What it always means: the process ends
    End,
    /// Write an epoch, then end
    Suspend,
}

impl LaunchOptions {
    /// What every rank ends with after a suspend.
    pub fn suspended_status(&self) -> u8 {
        self.suspended_status
            .unwrap_or_else(batch::suspended_status)
    }

    /// What ranks may hold on to while they write behind the application's back.
    pub fn copies(&self) -> Option<Copies> {
        let most = self.copy_memory;
        match self.copy {
            Copy::Off => None,
            Copy::Auto => Some(Copies { most }),
            Copy::On => Some(Copies {
                most: most.or(Some(u64::MAX)),
            }),
        }
    }

    /// Whether memory that is equal is written once.
    pub fn dedup(&self) -> bool {
        match self.dedup {
            Dedup::Auto => self.tiers.staging().is_none(),
            Dedup::On => true,
            Dedup::Off => false,
        }
    }

    /// Whether a suspend copies ahead.
    pub fn precopy(&self) -> job::Precopy {
        match self.precopy {
            Precopy::Auto => job::Precopy::Auto,
            Precopy::On => job::Precopy::On,
            Precopy::Off => job::Precopy::Off,
        }
    }

    /// How this rank's machine is to tell what is written to.
    ///
    /// # Errors
    /// Where it has not what is asked for.
    pub fn tracking(&self) -> Result<Tracking, Failure> {
        if self.incremental == IncrementalOption::Off {
            return Ok(Tracking::None);
        }
        stillpoint_tracking::choose(self.tracking.wanted())
            .map_err(|error| Failure::new(Failure::USAGE, format!("--tracking: {error}")))
    }

    /// The batch job that is to be started again after a suspend.
    pub fn requeued(&self) -> Result<Option<BatchJob>, Failure> {
        self.requeue.then(batch::to_be_requeued).transpose()
    }

    /// Refuses what this version does not offer, before anything is started.
    pub fn refuse_unavailable(&self) -> Result<(), Failure> {
        let whole = self.incremental == IncrementalOption::Off;
        let useless = whole || self.copy == Copy::Off || self.tiers.staging().is_some();
        if self.precopy == Precopy::On && useless {
            return Err(Failure::new(
                Failure::USAGE,
                "--precopy on needs --incremental, and neither --copy off nor --tier",
            ));
        }
        let by_pages = self.incremental == IncrementalOption::Pages;
        if by_pages && self.tracking == TrackingOption::None {
            return Err(Failure::new(
                Failure::USAGE,
                "--incremental=pages needs pages to be told apart, which --tracking none does not",
            ));
        }
        self.tiers.check()
    }
}

/// A name must not look like a directory, or TARGET could mean either.
fn parse_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains('/') || text.chars().any(char::is_control) {
        true => Err("a name is not empty and has no '/' and no control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn parse_compression(text: &str) -> Result<String, String> {
    stillpoint_image::Compression::from_str(text).map(|_| text.to_owned())
}

/// "USR1", "SIGUSR1" or "10".
fn parse_signal(text: &str) -> Result<i32, String> {
    let wrong =
        || format!("'{text}' is not a signal that can be caught: write USR1, SIGUSR1 or 10");
    let signal = match text.parse::<i32>() {
        Ok(number) => Signal::try_from(number).map_err(|_| wrong())?,
        Err(_) => {
            let upper = text.to_uppercase();
            let name = if upper.starts_with("SIG") {
                upper
            } else {
                format!("SIG{upper}")
            };
            Signal::from_str(&name).map_err(|_| wrong())?
        }
    };
    match signal {
        // SIGSYS is the gate's own.
        Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGSYS => Err(wrong()),
        signal => Ok(signal as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for text in ["USR1", "usr1", "SIGUSR1", "10"] {
            assert_eq!(parse_signal(text), Ok(10), "{text}");
        }
        for text in ["KILL", "9", "SYS", "0", "", "NOPE", "99"] {
            assert!(parse_signal(text).is_err(), "{text}");
        }
    }
}
