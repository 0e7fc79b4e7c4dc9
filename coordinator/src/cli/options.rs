//! Options that `run` and `restart` share: they are the launch's, not the image's.

mod parse;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stillpoint_protocol::Silence;

use stillpoint_incremental::tracking::Tracking;
use stillpoint_multilevel::units::parse_bytes;

use super::tiers::TierOptions;
use super::units::parse_duration;
use super::{Failure, batch};
use crate::job::Copies;
use crate::server::BatchJob;
use parse::{parse_compression, parse_name, parse_signal, parse_silence};
use values::TrackingOption;
pub use values::{IncrementalOption, MappedFiles, Mpi, OnTerm, SafeState, When};

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
    pub copy: When,

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
    pub dedup: When,

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
    pub gpu_staging: When,

    /// Whether a suspend of a job with --incremental writes an epoch while the application runs, and then what has changed since: auto does
    /// where that makes the stop shorter, as far as earlier epochs tell
    #[arg(
        long,
        env = "STILLPOINT_PRECOPY",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub precopy: When,

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

    /// The MPI library to run on, where it is not the launcher's own: one with the standard's ABI (libmpi_abi.so.1), MPICH's (libmpi.so.12), or the Open MPI that the dynamic linker finds (libmpi.so.40)
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

    /// How long a host of the job may be silent before it counts as unreachable: 2 s to 1 h
    #[arg(long, env = "STILLPOINT_SILENCE", value_name = "TIME", default_value = "30s",
          value_parser = parse_silence)]
    pub silence: Silence,

    #[command(flatten)]
    pub tiers: TierOptions,
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
            When::Off => None,
            When::Auto => Some(Copies { most }),
            When::On => Some(Copies {
                most: most.or(Some(u64::MAX)),
            }),
        }
    }

    /// Whether memory that is equal is written once.
    pub fn dedup(&self) -> bool {
        match self.dedup {
            When::Auto => self.tiers.staging().is_none(),
            When::On => true,
            When::Off => false,
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
        let useless = whole || self.copy == When::Off || self.tiers.staging().is_some();
        if self.precopy == When::On && useless {
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
