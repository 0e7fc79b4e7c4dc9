//! The launch contract: `stillpoint run` and `stillpoint restart` pass it to the lower half that they become.
//!
//! It is one environment variable, [`VARIABLE`], which holds a [`Launch`] as JSON. The program and its arguments follow on the command line:
//!
//! ```text
//! STILLPOINT_LAUNCH='{...}' stillpoint-lower-openmpi run -- APP ARGS...
//! STILLPOINT_LAUNCH='{...}' stillpoint-lower-openmpi restart
//! ```
//!
//! The lower half reads it with [`Launch::from_environment`], removes it from the application's environment, and finds the coordinator with
//! [`Launch::connect`].

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_incremental::tracking::Tracking;

use crate::client::{AgentConnection, ClientError};
use crate::job_file::{JobFile, JobFileError, JobState};
use crate::lasting::Terms;
use crate::launch_start::Awaits;
use crate::tier::Tiers;

/// The environment variable.
pub const VARIABLE: &str = "STILLPOINT_LAUNCH";
/// Variables of the dynamic loader that the user has set for the application: the lower half is started without them. Each comes with the variable that keeps
/// its value for the application.
pub const KEPT_FROM_LOADER: [(&str, &str); 2] = [
    ("LD_PRELOAD", "STILLPOINT_PRELOAD"),
    ("LD_AUDIT", "STILLPOINT_AUDIT"),
];

/// An address at which every rank of a job has a mapping. The command recognizes a rank by it.
pub const RANK_MARK: u64 = 0x5500_0000_0000;

/// One rank's part of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The checkpoint directory, absolute; job.json is in it.
    pub directory: PathBuf,
    /// The job's id, the same through all restarts; it goes into every image.
    pub job: String,
    /// This launch's id; it goes into [`crate::agent::Hello`].
    pub launch: String,
    pub name: String,
    /// World rank and size, as the launcher reports them.
    pub rank: Rank,
    pub size: u32,
    /// The binary interface of the application: `openmpi`.
    pub mpi: String,
    /// The binary interface of the library below: `openmpi`, or `abi`, the standard's.
    pub library: String,
    /// The file of the library below, if it is loaded at launch.
    #[serde(default)]
    pub library_file: Option<PathBuf>,
    /// The library of stubs for the application.
    pub upper_library: PathBuf,
    /// The application and its arguments, as the user gave them.
    pub command: Vec<String>,
    /// The epoch to restore; `None`: start afresh.
    pub restart: Option<Restart>,
    /// The signal number that asks for a suspend, unless the application handles it itself.
    pub suspend_signal: i32,
    /// Whether SIGTERM asks for a suspend too.
    pub suspend_on_term: bool,
    /// The exit status of the process after a suspend.
    #[serde(default)]
    pub suspended_status: u8,
    /// Whether the ranks use two-phase commit instead of the clock, if they start afresh.
    #[serde(default)]
    pub two_phase: bool,
    /// The path of the `stillpoint` command, for the first rank only: its agent starts another coordinator when the job's has died.
    #[serde(default)]
    pub stillpoint: Option<PathBuf>,
    /// The tiers on which images are staged; `None`: images are written to the checkpoint directory.
    #[serde(default)]
    pub tiers: Option<Tiers>,
    /// Whether images hold the bytes of privately mapped files.
    #[serde(default)]
    pub mapped_files: MappedFiles,
    /// The method that finds the memory that the application writes to, if images build on earlier ones.
    #[serde(default)]
    pub tracking: Tracking,
    /// The files that are synced to disk before an epoch is committed.
    #[serde(default)]
    pub sync_files: SyncFiles,
    /// The fate of connections that lead out of the process.
    #[serde(default)]
    pub sockets: Sockets,
    /// Whether memory of GPUs is staged.
    #[serde(default)]
    pub gpu_staging: GpuStaging,
    /// The handling of standard input.
    #[serde(default)]
    pub input: Input,
    /// The start time of the command: nanoseconds since 1970.
    #[serde(default)]
    pub begun: i64,
    /// The message that the lower half still waits for before its rank can join.
    #[serde(default)]
    pub awaits: Option<Awaits>,
}

/// The handling of a rank's standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The most bytes of it that are read ahead; `None`: the default number.
    pub ahead: Option<u64>,
    /// Whether a restart may find it at its end although the program waits for more.
    pub may_end: bool,
}

/// Whether memory of GPUs is copied to a place with room on the node while the application stands still, and from there into the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuStaging {
    /// If the node's driver lets it be copied, and there is room.
    #[default]
    Auto,
    /// Always: a checkpoint is refused if that is not possible.
    On,
    /// Never: it goes into the rank's own memory.
    Off,
}

/// The bytes of a privately mapped file that an image holds, besides the process's own pages of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MappedFiles {
    /// No bytes, unless the file is likely to go away or to change.
    #[default]
    Auto,
    /// No bytes, if the file can be found by its name.
    Refer,
    /// Every byte.
    Keep,
}

/// The fate of connections that lead out of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sockets {
    /// They make a checkpoint refuse.
    #[default]
    Refuse,
    /// A restart makes them anew, as ones that their peers have closed.
    Reset,
}

/// The files of the application that are synced for an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncFiles {
    /// Files that are open for writing.
    #[default]
    Open,
    /// The whole file systems of these files and of the working directory: this includes files that were closed before, and files of others.
    All,
    /// No files.
    Off,
}

/// The epoch and image from which a rank is restored. The command has checked the manifest and the rank count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    pub epoch: Epoch,
    /// The epoch's directory, absolute.
    pub directory: PathBuf,
    /// This rank's image.
    pub image: PathBuf,
    /// An open descriptor of a file that holds blocks of the image, fetched from other hosts. The rank has to close it.
    #[serde(default)]
    pub fetched: Option<i32>,
    /// Whether the application carries on before all of its memory is there.
    #[serde(default)]
    pub lazy: bool,
}

/// The result of starting a coordinator, for its starter: one line of JSON on the coordinator's stdout.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ready {
    Serving,
    Failed { status: u8, text: String },
}

/// The reason why a launch cannot be read, or its coordinator not be reached.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(
        "{VARIABLE} is not set: start this program with `stillpoint run` or `stillpoint restart`"
    )]
    Missing,
    #[error("cannot read {VARIABLE}: {0}")]
    Malformed(String),
    #[error(transparent)]
    JobFile(#[from] JobFileError),
    #[error("{}: the directory belongs to another launch ({found} instead of {expected})", directory.display())]
    AnotherLaunch {
        directory: PathBuf,
        found: String,
        expected: String,
    },
    /// A job ends with its ranks, and a rank is one program.
    #[error("the job '{name}' is {} already: only one program of a rank can use MPI in a launch", state.name())]
    Over { name: String, state: JobState },
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Launch {
    /// Reads the contract from the environment.
    pub fn from_environment() -> Result<Launch, LaunchError> {
        let text = std::env::var(VARIABLE).map_err(|_| LaunchError::Missing)?;
        Launch::from_variable(&text)
    }

    /// Reads a value of [`VARIABLE`].
    pub fn from_variable(text: &str) -> Result<Launch, LaunchError> {
        serde_json::from_str(text).map_err(|error| LaunchError::Malformed(error.to_string()))
    }

    /// The value of [`VARIABLE`].
    pub fn to_variable(&self) -> String {
        // Only map keys that are not text, or a path that is not UTF-8, could fail here. The command refuses such paths before.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Connects this rank's agent to the coordinator that job.json names, trying for `patience`.
    pub fn connect(&self, patience: Duration) -> Result<AgentConnection, LaunchError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.try_connect(patience) {
                Ok(connection) => return Ok(connection),
                Err(error @ LaunchError::Over { .. }) => return Err(error),
                Err(error) if Instant::now() >= deadline => return Err(error),
                // A network file system may show the directory's old state for a moment, and a coordinator may be busy with a thousand other ranks.
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The connection terms that the agents of this launch share.
    pub fn terms(&self) -> Result<Terms, LaunchError> {
        Ok(JobFile::read(&self.directory)?.terms())
    }

    /// Connects to the coordinator that job.json names now, if it runs.
    pub fn try_connect(&self, patience: Duration) -> Result<AgentConnection, LaunchError> {
        let job = JobFile::read(&self.directory)?;
        if job.launch != self.launch {
            return Err(LaunchError::AnotherLaunch {
                directory: self.directory.clone(),
                found: job.launch,
                expected: self.launch.clone(),
            });
        }
        if job.state != JobState::Running {
            let (name, state) = (job.name, job.state);
            return Err(LaunchError::Over { name, state });
        }
        Ok(AgentConnection::open(
            &job.addresses,
            &job.terms(),
            patience,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_survives_its_variable() {
        let launch = Launch {
            directory: "/a b/stillpoint.d".into(),
            job: "1".into(),
            launch: "2".into(),
            name: "melt".into(),
            rank: Rank(3),
            size: 4,
            mpi: "openmpi".into(),
            library: "abi".into(),
            library_file: Some("/opt/lib/libmpi_abi.so.1".into()),
            upper_library: "/lib/u.so".into(),
            command: vec!["lmp".into(), "-in".into(), "x \"y\"\n".into()],
            restart: Some(Restart {
                epoch: Epoch(5),
                directory: "/d/epoch-000005".into(),
                image: "/d/epoch-000005/rank-000003.img".into(),
                fetched: Some(767),
                lazy: true,
            }),
            suspend_signal: 10,
            suspend_on_term: true,
            suspended_status: 75,
            two_phase: true,
            stillpoint: Some("/usr/bin/stillpoint".into()),
            tiers: Some(Tiers {
                fast: "/dev/shm/x".into(),
                capacity: 7,
                slow_capacity: None,
                fast_limit: None,
                slow_limit: Some(3),
                peer_limit: None,
            }),
            mapped_files: MappedFiles::Keep,
            tracking: Tracking::WpAsync,
            sync_files: SyncFiles::All,
            sockets: Sockets::Reset,
            gpu_staging: GpuStaging::On,
            input: Input {
                ahead: Some(1),
                may_end: true,
            },
            begun: 1_790_000_000_000_000_000,
            awaits: Some(Awaits::Coordinator {
                answer: 9,
                first: 4711,
            }),
        };
        let read = Launch::from_variable(&launch.to_variable()).unwrap();
        assert_eq!(read, launch);
    }
}
