//! The description of a launch for its coordinator.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillpoint_directory::Directory;
use stillpoint_faults::Replacement;
use stillpoint_ids::Epoch;
use stillpoint_multilevel::placement::Rules;
use stillpoint_protocol::agent::Incremental;
use stillpoint_protocol::job_file::{
    ChosenInterval, FORMAT, JobFile, JobState, Process, host_name,
};
use stillpoint_protocol::namespace::Namespace;
use stillpoint_protocol::{Key, Silence, Span};

use crate::epoch::{Mark, seconds_since_1970};
use crate::job::{Copies, Location, Patience, Settings};

use super::requeue::BatchJob;

/// The job, the launch and the options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The checkpoint directory, absolute.
    pub directory: PathBuf,
    pub job: String,
    /// The same as in job.json.
    #[serde(default)]
    pub origin: Option<String>,
    pub launch: String,
    pub name: String,
    pub ranks: u32,
    /// The process that becomes rank 0.
    pub starter: Process,
    /// Whether every rank runs on this host, so that the coordinator need not be reached from others.
    pub one_host: bool,
    /// The time for which a host may be silent before it counts as unreachable.
    #[serde(default)]
    pub silence: Silence,
    /// The binary interfaces of the application and of the library below it.
    pub mpi: String,
    pub library: String,
    pub command: Vec<String>,
    pub working_directory: PathBuf,
    pub restarted_from: Option<Epoch>,
    /// Whether to give up existing epochs in the directory before the job begins.
    #[serde(default)]
    pub discard: bool,
    /// The number of committed epochs to keep.
    pub keep: usize,
    pub interval: Option<Span>,
    /// The time between failures for which the interval is chosen, if it is automatic.
    #[serde(default)]
    pub mttf: Option<Span>,
    /// The command that hears of events.
    #[serde(default)]
    pub on_event: Option<String>,
    /// The group that may ask for a suspend.
    #[serde(default)]
    pub operators: Option<String>,
    /// The exit status of every rank after a suspend.
    pub suspended_status: u8,
    /// The batch job to requeue after a suspend.
    pub requeue: Option<BatchJob>,
    pub compress: String,
    /// The extent to which epochs build on earlier ones.
    pub incremental: Incremental,
    /// Whether equal memory is written once.
    pub dedup: bool,
    /// The limit of copies, if the application runs on while images are written.
    pub copies: Option<Copies>,
    /// Whether a suspend copies ahead.
    pub precopy: bool,
    /// The rules for staging images, if the launch has tiers.
    pub staging: Option<Staging>,
    /// The epoch to gather, and then to restart from.
    pub recovers: Option<Epoch>,
    /// The job file of a coordinator that has died, if this one takes over.
    #[serde(skip)]
    pub predecessor: Option<JobFile>,
}

/// The file of the description in the checkpoint directory, for a coordinator that takes over.
const KEPT: &str = ".launch.json";
/// The longest description: a command line and some paths.
const MAX_KEPT_BYTES: u64 = 8 << 20;

/// The rules for staging images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    pub local_only: bool,
    pub partners: bool,
}

impl From<Staging> for Rules {
    fn from(staging: Staging) -> Rules {
        Rules {
            local_only: staging.local_only,
            partners: staging.partners,
        }
    }
}

impl Spec {
    /// Writes the description to the checkpoint directory.
    pub fn keep(&self, directory: &Directory) -> std::io::Result<()> {
        directory.replace(KEPT, &serde_json::to_vec(self)?, Some(Replacement::LAUNCH))
    }

    /// Reads the description of the launch that job.json names, to take it over.
    pub fn kept(directory: &Directory, job: JobFile) -> std::io::Result<Spec> {
        let spec: Spec = serde_json::from_slice(&directory.read(KEPT, MAX_KEPT_BYTES)?)?;
        if spec.launch != job.launch {
            return Err(std::io::Error::other(format!(
                "{KEPT} belongs to another launch"
            )));
        }
        Ok(Spec {
            // The recovery is over, since ranks run only after it.
            recovers: None,
            restarted_from: job.restarted_from,
            predecessor: Some(job),
            ..spec
        })
    }

    /// Whether the epochs of `job` in the directory are this job's too.
    pub fn carries(&self, job: &str) -> bool {
        self.job == job || self.origin.as_deref() == Some(job)
    }

    /// The number of coordinators of this launch before this one.
    fn predecessors(&self) -> u32 {
        self.predecessor
            .as_ref()
            .map_or(0, |job| job.predecessors + 1)
    }

    /// The reason why a suspend by signal was not carried out, as the predecessor has noted it.
    fn not_suspended(&self) -> Option<String> {
        self.predecessor.as_ref()?.not_suspended.clone()
    }

    /// The processes of all ranks, if the predecessor had all ranks.
    fn known_processes(&self) -> Option<&[Process]> {
        let known = self.predecessor.as_ref()?.processes.as_slice();
        (known.len() == self.ranks as usize).then_some(known)
    }

    /// The ranks' processes, as the predecessor knew them.
    pub(super) fn processes(&self) -> Vec<Option<Process>> {
        match self.known_processes() {
            None => vec![None; self.ranks as usize],
            Some(known) => known.iter().cloned().map(Some).collect(),
        }
    }

    /// The job's settings. The arguments are its own newest epoch, and the newest one in the directory.
    pub(super) fn settings(
        &self,
        newest_epoch: Option<Epoch>,
        newest_here: Option<Epoch>,
        mark: Mark,
        patience: Patience,
        costs: Option<ChosenInterval>,
    ) -> Settings {
        Settings {
            ranks: self.ranks,
            launch: self.launch.clone(),
            location: Location::new(&host_name(), Namespace::here()),
            directory: self.directory.clone(),
            mark,
            compress: self.compress.clone(),
            incremental: self.incremental,
            dedup: self.dedup,
            copies: self.copies,
            precopy: self.precopy,
            // An epoch that was read from another directory counts too, since numbers only go up in a job's life.
            next_epoch: newest_here
                .max(self.restarted_from)
                .map_or(Epoch::FIRST, Epoch::next),
            newest_epoch,
            interval: self.interval,
            mttf: self.mttf,
            costs,
            silence: self.silence,
            suspended_status: self.suspended_status,
            requeue: self.requeue.is_some(),
            staging: self.staging.map(Rules::from),
            restarted_from: self.restarted_from,
            has_begun: self.known_processes().is_some(),
            not_suspended: self.not_suspended(),
            recovers: self.recovers,
            // Agents must not take an order of this coordinator for one of its predecessor's attempts.
            attempts_before: u64::from(self.predecessors()) << 32,
            patience,
        }
    }

    /// The contents of job.json when the launch begins.
    pub(super) fn job_file(
        &self,
        addresses: Vec<String>,
        epoch: Option<Epoch>,
        directory: &Directory,
    ) -> std::io::Result<JobFile> {
        let predecessor = self.predecessor.as_ref();
        Ok(JobFile {
            format: FORMAT,
            job: self.job.clone(),
            origin: self.origin.clone(),
            launch: self.launch.clone(),
            name: self.name.clone(),
            state: JobState::Running,
            reason: None,
            exit_status: None,
            addresses,
            // Ranks and commands hold the predecessor's key, and peers authenticate each other with it.
            key: match predecessor {
                Some(job) => job.key.clone(),
                None => Key::random()?,
            },
            silence: self.silence,
            coordinator: Process::this(),
            ranks: self.ranks,
            processes: self.processes().into_iter().flatten().collect(),
            mpi: self.mpi.clone(),
            library: self.library.clone(),
            command: self.command.clone(),
            working_directory: self.working_directory.clone(),
            restarted_from: self.restarted_from,
            recovers: self.recovers,
            suspended_by: None,
            not_suspended: self.not_suspended(),
            requeued: None,
            interval: None,
            epoch,
            directory: directory.path().canonicalize().ok(),
            inode: Some(directory.inode()),
            predecessors: self.predecessors(),
            started: predecessor.map_or_else(seconds_since_1970, |job| job.started),
            ended: None,
            copied: false,
        })
    }
}
