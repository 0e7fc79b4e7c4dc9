//! DIR/job.json: the coordinator's address and the key that authenticates clients (hence mode 0600), the command of the job, and the result of a job that has
//! ended.
//!
//! It is written whole under another name and renamed, so that a reader never sees half of it.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_faults::Replacement;
use stillpoint_ids::Epoch;

use crate::command::Requester;
use crate::key::Key;
use crate::lasting::{Silence, Terms};
pub use crate::process::{Process, host_name, start_time};

/// The file's name in the checkpoint directory.
pub const NAME: &str = "job.json";
/// Changes when an older reader would misread the file.
pub const FORMAT: u32 = 1;
/// Longer than any job file; a longer file is not read.
const MAX_BYTES: u64 = 4 << 20;
/// The time to wait for a file that is being replaced.
const REPLACED: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// The contents of job.json. The field names are part of the interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    pub format: u32,
    /// The job's id: the same through all its restarts, and in every image.
    pub job: String,
    /// The job that this one continues in a copy of its directory: the epochs that were there have its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// This launch's id: every restart has another one.
    pub launch: String,
    pub name: String,
    pub state: JobState,
    /// Why the job failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The first non-zero exit status of a rank, or 0 when all have ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// "host:port", in the order to try them; empty when the job has ended.
    pub addresses: Vec<String>,
    pub key: Key,
    /// The seconds for which a host may be silent before it counts as unreachable.
    #[serde(default)]
    pub silence: Silence,
    pub coordinator: Process,
    pub ranks: u32,
    /// The processes of the ranks that have connected so far.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// The binary interface of the application.
    pub mpi: String,
    /// The binary interface of the library below it in this launch.
    #[serde(default = "only_library")]
    pub library: String,
    pub command: Vec<String>,
    pub working_directory: PathBuf,
    /// The epoch that this launch was restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_from: Option<Epoch>,
    /// The epoch whose blocks this launch gathers first, to restart from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovers: Option<Epoch>,
    /// The user who had the job suspended, if not its own user, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_by: Option<Requester>,
    /// The reasons why a suspend that a signal asked for has not come about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_suspended: Option<String>,
    /// The command by which the batch system has been told to start the suspended job again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeued: Option<String>,
    /// The interval of periodic checkpoints that was chosen, if it is automatic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<ChosenInterval>,
    /// The newest committed epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// The checkpoint directory that this file was written for, and its number in its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// Coordinators of this launch that have died before this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub predecessors: u32,
    /// Seconds since 1970.
    pub started: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Whether the file was found in another directory than it was written for. Then its statements about a running job do not concern the directory that it
    /// was read from.
    #[serde(skip)]
    pub copied: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An interval of periodic checkpoints, and its reasons. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenInterval {
    /// Computing between two stops.
    pub every: u64,
    /// Between two failures of the job, on average.
    pub mttf: u64,
    /// The application stood still for an epoch.
    pub stopped: u64,
    /// From the beginning of a stop until its epoch was durable.
    pub durable: u64,
    /// From a failure until the application computes again, as expected.
    pub restart: u64,
    /// The part of the time that is expected to be lost; `None`: no epoch has been measured yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_per_million: Option<u64>,
}

/// The states of a job, as `stillpoint status` shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Running,
    Suspended,
    Finished,
    Failed,
}

impl JobState {
    pub const fn name(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Suspended => "suspended",
            JobState::Finished => "finished",
            JobState::Failed => "failed",
        }
    }
}

/// The reason why job.json cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    #[error("{}: there is no job here: check the name of the checkpoint directory", path.display())]
    Missing { path: PathBuf },
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error("{}: {by}: this coordinator writes nothing there any more", path.display())]
    Taken { path: PathBuf, by: String },
    #[error("{}: this release of Stillpoint cannot read this job file: {problem}", path.display())]
    Malformed {
        path: PathBuf,
        problem: String,
        /// The file is not JSON. No release writes such a file, so it is damaged.
        damaged: bool,
    },
}

impl JobFile {
    /// The path of a checkpoint directory's job file.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(NAME)
    }

    /// Reads DIRECTORY/job.json.
    pub fn read(directory: &Path) -> Result<JobFile, JobFileError> {
        let held = Directory::open(directory, RequiredOwner::Anyones);
        Self::read_in(&held.map_err(|error| unread(Self::path(directory), error))?)
    }

    /// Reads job.json in a directory that is held.
    pub fn read_in(held: &Directory) -> Result<JobFile, JobFileError> {
        let path = Self::path(held.path());
        let text = whole(held).map_err(|error| unread(path.clone(), error))?;
        let malformed = |problem: String, damaged| JobFileError::Malformed {
            path: path.clone(),
            problem,
            damaged,
        };
        let mut job: JobFile = serde_json::from_slice(&text)
            .map_err(|e| malformed(e.to_string(), e.is_syntax() || e.is_eof()))?;
        if job.format != FORMAT {
            return Err(malformed(format!("format {}", job.format), false));
        }
        job.copied = job.belongs_elsewhere(held);
        Ok(job)
    }

    /// The terms for connections of this launch.
    pub fn terms(&self) -> Terms {
        Terms {
            key: self.key.clone(),
            silence: self.silence,
        }
    }

    /// Whether the epochs of `job` in this directory are those that this job carries on from.
    pub fn carries(&self, job: &str) -> bool {
        self.job == job || self.origin.as_deref() == Some(job)
    }

    /// Whether the job runs in the directory that the file was read from, as far as this file knows.
    pub fn runs_here(&self) -> bool {
        self.state == JobState::Running && !self.copied
    }

    /// Whether the directory is a copy: neither its number nor its path is the recorded one. A directory that was moved keeps its number. On file systems
    /// that change the numbers, it keeps its path.
    fn belongs_elsewhere(&self, held: &Directory) -> bool {
        let number = self.inode.is_some_and(|inode| inode != held.inode());
        let path = || {
            let here = held.path().canonicalize();
            let there = self.directory.as_ref();
            there.is_some_and(|there| here.is_ok_and(|here| here != *there))
        };
        number && path()
    }

    /// Replaces job.json in the directory at a path; see [`JobFile::write_in`].
    pub fn write(&self, directory: &Path) -> Result<(), JobFileError> {
        let held = Directory::open(directory, RequiredOwner::Anyones);
        let failed = |source| JobFileError::Io {
            path: directory.to_owned(),
            action: "open it",
            source,
        };
        self.write_in(&held.map_err(failed)?)
    }

    /// Replaces job.json in `directory` in one step; readable by its owner only.
    pub fn write_in(&self, directory: &Directory) -> Result<(), JobFileError> {
        let path = Self::path(directory.path());
        let text = serde_json::to_vec_pretty(self).map_err(|e| JobFileError::Malformed {
            path: path.clone(),
            problem: e.to_string(),
            damaged: false,
        })?;
        let failed = |source| JobFileError::Io {
            path,
            action: "write it",
            source,
        };
        directory
            .replace(NAME, &[&text[..], b"\n"].concat(), Some(Replacement::JOB))
            .map_err(failed)
    }
}

/// Reads the file. Some file systems (NFS, many in user space) put a file that is open aside before they give its name to another one. Then the name is
/// missing for a moment, while the draft of the new file is there.
fn whole(held: &Directory) -> io::Result<Vec<u8>> {
    let since = Instant::now();
    loop {
        match held.read(NAME, MAX_BYTES) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && since.elapsed() < REPLACED
                    && held.has_draft(NAME) =>
            {
                sleep(PAUSE);
            }
            // The draft may have been renamed since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return held.read(NAME, MAX_BYTES);
            }
            read => return read,
        }
    }
}

fn unread(path: PathBuf, source: io::Error) -> JobFileError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => JobFileError::Missing { path },
        _ => JobFileError::Io {
            path,
            action: "read it",
            source,
        },
    }
}

/// The library of jobs whose file does not name one.
fn only_library() -> String {
    "openmpi".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn job() -> JobFile {
        JobFile {
            format: FORMAT,
            job: "j".into(),
            origin: None,
            launch: "l".into(),
            name: "n".into(),
            state: JobState::Running,
            reason: None,
            exit_status: None,
            addresses: vec!["127.0.0.1:1".into()],
            key: Key::random().unwrap(),
            silence: Silence::default(),
            coordinator: Process::this(),
            ranks: 4,
            processes: vec![],
            mpi: "openmpi".into(),
            library: "openmpi".into(),
            command: vec!["a b".into()],
            working_directory: "/".into(),
            restarted_from: None,
            recovers: None,
            suspended_by: None,
            not_suspended: None,
            requeued: None,
            interval: None,
            epoch: Some(Epoch(3)),
            directory: None,
            inode: None,
            predecessors: 0,
            started: 1,
            ended: None,
            copied: false,
        }
    }

    #[test]
    fn it_comes_back_as_it_was_written_and_is_private() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".job.json.new"), "left by a crash").unwrap();
        job().write(directory.path()).unwrap();
        let mut second = job();
        second.state = JobState::Suspended;
        second.write(directory.path()).unwrap();
        assert_eq!(JobFile::read(directory.path()).unwrap(), second);
        let mode = fs::metadata(JobFile::path(directory.path()))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_that_is_being_replaced_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let written = job();
        written.write(directory.path()).unwrap();
        let path = JobFile::path(directory.path());
        let draft = directory.path().join(".job.json.1-1-1.new");
        fs::rename(&path, &draft).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| JobFile::read(directory.path()));
            sleep(Duration::from_millis(300));
            fs::rename(&draft, &path).unwrap();
            assert_eq!(reader.join().unwrap().unwrap(), written);
        });
    }

    #[test]
    fn what_is_not_a_job_file_is_said_to_be_none() {
        let directory = tempfile::tempdir().unwrap();
        let read = || JobFile::read(directory.path());
        assert!(matches!(read(), Err(JobFileError::Missing { .. })));
        let path = JobFile::path(directory.path());
        for text in ["", "{", "[]", "{\"format\": 1}"] {
            fs::write(&path, text).unwrap();
            assert!(
                matches!(read(), Err(JobFileError::Malformed { .. })),
                "{text}"
            );
        }
        let mut newer = job();
        newer.format = 99;
        newer.write(directory.path()).unwrap();
        assert!(read().unwrap_err().to_string().contains("format 99"));
    }

    #[test]
    fn a_copy_is_known_and_a_directory_that_was_moved_is_none() {
        let root = tempfile::tempdir().unwrap();
        let [original, moved, copy] = ["original", "moved", "copy"].map(|n| root.path().join(n));
        fs::create_dir(&original).unwrap();
        let held = Directory::open(&original, RequiredOwner::Ours).unwrap();
        let file = JobFile {
            directory: original.canonicalize().ok(),
            inode: Some(held.inode()),
            ..job()
        };
        file.write_in(&held).unwrap();
        assert!(JobFile::read(&original).unwrap().runs_here());
        fs::create_dir(&copy).unwrap();
        fs::copy(JobFile::path(&original), JobFile::path(&copy)).unwrap();
        assert!(JobFile::read(&copy).unwrap().copied);
        fs::rename(&original, &moved).unwrap();
        assert!(JobFile::read(&moved).unwrap().runs_here());
    }

    #[test]
    fn a_fifo_or_a_link_in_its_place_is_no_job_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = JobFile::path(directory.path());
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let read = || JobFile::read(directory.path()).unwrap_err().to_string();
        assert!(read().contains("not a regular file"), "{}", read());
        fs::remove_file(&path).unwrap();
        fs::write(directory.path().join("other"), "{}").unwrap();
        std::os::unix::fs::symlink("other", &path).unwrap();
        assert!(read().contains("it is a symbolic link"), "{}", read());
        job().write(directory.path()).unwrap();
        assert_eq!(
            fs::read_to_string(directory.path().join("other")).unwrap(),
            "{}",
            "the link was written through"
        );
        fs::remove_file(&path).unwrap();
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(read().contains("longer than"), "{}", read());
    }
}
