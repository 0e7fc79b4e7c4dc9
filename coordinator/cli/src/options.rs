//! Options that `run` and `restart` share: they belong to the launch, not to the image.

mod parse;
mod values;

use std::path::PathBuf;

use clap::Args;
use stillpoint_protocol::launch::Input;
use stillpoint_protocol::{Silence, Span};

use stillpoint_incremental::tracking::Tracking;
use stillpoint_multilevel::units::parse_bytes;

use stillpoint_refusals::Code;

use super::tiers::TierOptions;
use super::units::parse_duration;
use super::{Failure, batch};
use parse::{parse_compression, parse_interval, parse_name, parse_signal, parse_silence};
use stillpoint_coordinator::job::Copies;
use stillpoint_coordinator::server::BatchJob;
use values::TrackingOption;
pub use values::{
    IncrementalOption, Interval, MappedFiles, Mpi, OnTerm, SafeState, Sockets, SyncFiles, When,
};

#[derive(Clone, Debug, Args)]
pub struct LaunchOptions {
    /// Name of the job, which commands take as TARGET [default: the application's]
    #[arg(long, env = "STILLPOINT_NAME", value_parser = parse_name)]
    pub name: Option<String>,

    /// Write an epoch at this interval (90s, 30m, 2h); auto: at the interval of least waste
    ///
    /// auto chooses anew after every epoch, from the times that the epochs of this launch have taken and from --mttf
    #[arg(long, env = "STILLPOINT_INTERVAL", value_name = "TIME", value_parser = parse_interval)]
    pub interval: Option<Interval>,

    /// With --interval auto: time between two failures of the whole job, on average (12h, 7d)
    #[arg(long, env = "STILLPOINT_MTTF", value_name = "TIME", value_parser = parse_duration)]
    pub mttf: Option<Span>,

    /// Number of committed epochs to keep (plus any earlier epochs that they depend on)
    #[arg(long, env = "STILLPOINT_KEEP", value_name = "K", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,

    /// Compression of images: none, lz4 or zstd[:level]
    #[arg(long, env = "STILLPOINT_COMPRESS", value_name = "HOW", default_value = "lz4",
          value_parser = parse_compression)]
    pub compress: String,

    /// Whether images leave out the unchanged memory of mapped files, which a restart then maps again
    #[arg(
        long,
        env = "STILLPOINT_MAPPED_FILES",
        value_name = "HOW",
        default_value = "auto"
    )]
    pub mapped_files: MappedFiles,

    /// Whether the application runs while its image is written
    ///
    /// Pages that it changes meanwhile are copied. auto: if there is room for the copies; on: in any case; off: the application stands still
    #[arg(
        long,
        env = "STILLPOINT_COPY",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub copy: When,

    /// Limit of these copies for each rank (4GiB, 500MB); memory beyond it is written first [default: half of the free memory, shared
    /// by the ranks of a node]
    #[arg(long, env = "STILLPOINT_COPY_MEMORY", value_name = "BYTES", value_parser = parse_bytes)]
    pub copy_memory: Option<u64>,

    /// Write only what has changed since the last epoch, which is kept as long as it is needed
    ///
    /// pages: every page that was written to; blocks: the blocks of those pages that differ; auto: the faster of the two, judged
    /// by the last epochs; off: every epoch is whole
    #[arg(long, env = "STILLPOINT_INCREMENTAL", value_name = "HOW", default_value = "off", num_args = 0..=1,
          require_equals = true, default_missing_value = "auto")]
    pub incremental: IncrementalOption,

    /// Whether equal memory of the ranks of a node is written once
    ///
    /// auto: yes, without --tier; on: yes, with --tier within each rank only; off: no
    #[arg(
        long,
        env = "STILLPOINT_DEDUP",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub dedup: When,

    /// How --incremental learns which memory was written to
    ///
    /// wp-async: from the kernel (Linux 6.7); none: all memory is hashed, if that is faster than writing it; auto: the first of
    /// them that this machine has, as `stillpoint check` shows
    #[arg(
        long,
        env = "STILLPOINT_TRACKING",
        value_name = "HOW",
        default_value = "auto"
    )]
    tracking: TrackingOption,

    /// Which of the application's files are synced before an epoch is committed, against power failures
    ///
    /// open: files that it has open for writing; all: closed ones too, by a sync of whole file systems, which also writes the data of others; off: none
    #[arg(
        long,
        env = "STILLPOINT_SYNC_FILES",
        value_name = "WHICH",
        default_value = "open"
    )]
    pub sync_files: SyncFiles,

    /// Whether a restart may lose connections that lead out of the process: to license servers, monitors and drivers
    ///
    /// refuse: they forbid a checkpoint; reset: after a restart they are closed by their peers (ECONNRESET). This is for TCP and Unix streams, to other ranks
    /// too. Sockets that listen, and those of UDP, are made and bound again, without what waits in them
    #[arg(
        long,
        env = "STILLPOINT_SOCKETS",
        value_name = "HOW",
        default_value = "refuse"
    )]
    pub sockets: Sockets,

    /// Whether GPU memory is staged on GPUs and in host memory, and written from there while the application runs
    ///
    /// auto: if the driver offers it and there is room; on: refuse a checkpoint otherwise; off: through the ranks' own memory
    #[arg(
        long,
        env = "STILLPOINT_GPU_STAGING",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub gpu_staging: When,

    /// Whether a suspend with --incremental first writes an epoch while the application runs, and then only what has changed since
    ///
    /// on: the stop is shorter; auto and off: the job ends sooner
    #[arg(
        long,
        env = "STILLPOINT_PRECOPY",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub precopy: When,

    /// Restart before all memory has been read; memory that is touched is read first
    ///
    /// If a part of an image turns out to be unreadable, the job ends then; the epoch stays as it was
    #[arg(long, env = "STILLPOINT_LAZY")]
    pub lazy: bool,

    /// Most of a standard input to read ahead (4GiB, 500MB), where it is a pipe: a checkpoint holds what was read, and a restart needs no more
    /// than what follows [default: 64MiB; most: 256MiB]
    #[arg(long, env = "STILLPOINT_INPUT_AHEAD", value_name = "BYTES", value_parser = parse_bytes)]
    pub input_ahead: Option<u64>,

    /// Carry on although standard input is empty and the program had not come to its end: it finds the end there
    #[arg(long, env = "STILLPOINT_INPUT_ENDS")]
    pub input_ends: bool,

    /// The MPI that the application was built for
    #[arg(
        long,
        env = "STILLPOINT_MPI",
        value_name = "MPI",
        default_value = "auto"
    )]
    pub mpi: Mpi,

    /// The MPI library to run on, if it is not the launcher's own: libmpi_abi.so.1 (the standard's ABI), libmpi.so.12 (MPICH's), or
    /// libmpi.so.40 (Open MPI, as the dynamic linker finds it)
    #[arg(long, env = "STILLPOINT_MPI_LIBRARY", value_name = "FILE")]
    pub mpi_library: Option<PathBuf>,

    /// Effect of SIGTERM, unless the application handles it itself
    #[arg(
        long,
        env = "STILLPOINT_ON_TERM",
        value_name = "WHAT",
        default_value = "end"
    )]
    pub on_term: OnTerm,

    /// Signal that suspends the job, unless the application handles it itself
    #[arg(long, env = "STILLPOINT_SUSPEND_SIGNAL", value_name = "SIG", default_value = "USR1",
          value_parser = parse_signal)]
    pub suspend_signal: i32,

    /// Exit status after a suspend [default: 75 in a batch job (SLURM_JOB_ID, PBS_JOBID, LSB_JOBID), else 0]
    #[arg(long, env = "STILLPOINT_SUSPENDED_STATUS", value_name = "N")]
    suspended_status: Option<u8>,

    /// After a suspend, requeue the batch job of Slurm (scontrol requeue)
    #[arg(long, env = "STILLPOINT_REQUEUE")]
    requeue: bool,

    /// Command that hears of the job's events, as a line of JSON on its standard input
    ///
    /// The coordinator runs it by /bin/sh and does not wait for it. It may take 30 s; its failure is told on the job's stderr
    #[arg(long, env = "STILLPOINT_ON_EVENT", value_name = "COMMAND")]
    pub on_event: Option<String>,

    /// Group, by name or number, whose members may suspend this job and do nothing else to it
    #[arg(long, env = "STILLPOINT_OPERATORS", value_name = "GROUP")]
    pub operators: Option<String>,

    /// Time after which a silent host of the job counts as unreachable: 2 s to 1 h
    #[arg(long, env = "STILLPOINT_SILENCE", value_name = "TIME", default_value = "30s",
          value_parser = parse_silence)]
    pub silence: Silence,

    #[command(flatten)]
    pub tiers: TierOptions,
}

impl LaunchOptions {
    /// The interval of periodic checkpoints, if one was given.
    pub fn interval(&self) -> Option<Span> {
        match self.interval {
            Some(Interval::Every(span)) => Some(span),
            Some(Interval::Auto) | None => None,
        }
    }

    /// The time between failures, if the interval is to be chosen by it.
    pub fn mttf(&self) -> Option<Span> {
        self.mttf.filter(|_| self.interval == Some(Interval::Auto))
    }

    /// The exit status of every rank after a suspend.
    pub fn suspended_status(&self) -> u8 {
        self.suspended_status
            .unwrap_or_else(batch::suspended_status)
    }

    /// The limit of copies that ranks make while they write behind the application's back.
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

    /// The handling of standard input.
    pub fn input(&self) -> Input {
        Input {
            ahead: self.input_ahead,
            may_end: self.input_ends,
        }
    }

    /// Whether equal memory is written once.
    pub fn dedup(&self) -> bool {
        match self.dedup {
            When::Auto => self.tiers.staging().is_none(),
            When::On => true,
            When::Off => false,
        }
    }

    /// Chooses how this rank's machine finds the memory that is written to.
    ///
    /// # Errors
    /// The machine does not have the requested way.
    pub fn tracking(&self) -> Result<Tracking, Failure> {
        if self.incremental == IncrementalOption::Off {
            return Ok(Tracking::None);
        }
        stillpoint_tracking::choose(self.tracking.wanted()).map_err(|error| {
            Failure::refuse(
                Code::KernelFeature,
                Failure::USAGE,
                format!("--tracking: {error}"),
            )
        })
    }

    /// The batch job to requeue after a suspend.
    pub fn requeued(&self) -> Result<Option<BatchJob>, Failure> {
        self.requeue.then(batch::to_be_requeued).transpose()
    }

    /// Refuses unavailable combinations of options, before anything is started.
    pub fn refuse_unavailable(&self) -> Result<(), Failure> {
        let whole = self.incremental == IncrementalOption::Off;
        let useless = whole || self.copy == When::Off || self.tiers.staging().is_some();
        if self.precopy == When::On && useless {
            return Err(Failure::refuse(
                Code::WrongOptions,
                Failure::USAGE,
                "--precopy on needs --incremental, and excludes --copy off and --tier",
            ));
        }
        if self.interval == Some(Interval::Auto) && self.mttf.is_none() {
            return Err(Failure::refuse(
                Code::WrongOptions,
                Failure::USAGE,
                "--interval auto needs the time between failures of the job: give it by --mttf, such as --mttf 2d",
            ));
        }
        let by_pages = self.incremental == IncrementalOption::Pages;
        if by_pages && self.tracking == TrackingOption::None {
            return Err(Failure::refuse(
                Code::WrongOptions,
                Failure::USAGE,
                "--incremental=pages needs pages to be tracked, but --tracking none tracks no pages: leave one of the \
                 two out",
            ));
        }
        self.tiers.check()
    }
}
