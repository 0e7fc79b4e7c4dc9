//! DIR/job.json: where a job's coordinator is and how to prove to it who one is (so: mode 0600), what
//! the job runs, and - when it has ended - how.
//!
//! Written whole under another name and renamed, so that a reader never sees half of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::key::Key;

/// The file's name in the checkpoint directory.
pub const NAME: &str = "job.json";
/// Changes when an older reader would misunderstand.
pub const FORMAT: u32 = 1;
/// Longer than any job file; a longer file is not read.
const MAX_BYTES: u64 = 4 << 20;

/// What job.json holds. The field names are part of the interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    pub format: u32,
    /// The job's id: the same through all its restarts, and in every image.
    pub job: String,
    /// This launch's id: another one after every restart.
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
    pub coordinator: Process,
    pub ranks: u32,
    /// Where the ranks run, as far as they have connected.
    #[serde(default)]
    pub processes: Vec<Process>,
    pub mpi: String,
    pub command: Vec<String>,
    pub working_directory: PathBuf,
    /// The epoch that this launch was restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_from: Option<u64>,
    /// The staged epoch that this launch makes whole first, to restart from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovers: Option<u64>,
    /// The newest committed epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Seconds since 1970.
    pub started: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
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

/// A process, named so that a later process with the same number is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub host: String,
    pub pid: u32,
    /// Field 22 of /proc/PID/stat, clock ticks after boot; 0: not known.
    pub start_time: u64,
}

impl Process {
    /// The calling process.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process {
            host: host_name(),
            pid,
            start_time: start_time(pid).unwrap_or(0),
        }
    }

    /// Whether it still runs; `None` when it is on another host.
    pub fn alive(&self) -> Option<bool> {
        if self.host != host_name() {
            return None;
        }
        Some(match start_time(self.pid) {
            Some(now) => self.start_time == 0 || now == self.start_time,
            None => false,
        })
    }
}

/// This host's name; empty if it has none that is text.
pub fn host_name() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default()
}

/// When a process of this host began; `None` when there is none, or only its zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Why job.json cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    #[error("{}: there is no job here", path.display())]
    Missing { path: PathBuf },
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error("{}: not a job file of this release of Stillpoint: {problem}", path.display())]
    Malformed { path: PathBuf, problem: String },
}

impl JobFile {
    /// Where the job file of a checkpoint directory is.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(NAME)
    }

    /// Reads DIRECTORY/job.json.
    pub fn read(directory: &Path) -> Result<JobFile, JobFileError> {
        let path = Self::path(directory);
        let failed = |source: io::Error| {
            let path = path.clone();
            match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    JobFileError::Missing { path }
                }
                _ => JobFileError::Io {
                    path,
                    action: "read it",
                    source,
                },
            }
        };
        let mut text = String::new();
        let file = File::open(&path).map_err(failed)?;
        file.take(MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let malformed = |problem: String| JobFileError::Malformed {
            path: path.clone(),
            problem,
        };
        let job: JobFile = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
        if job.format != FORMAT {
            return Err(malformed(format!("format {}", job.format)));
        }
        Ok(job)
    }

    /// Replaces DIRECTORY/job.json in one step; readable by its owner only.
    pub fn write(&self, directory: &Path) -> Result<(), JobFileError> {
        let path = Self::path(directory);
        let draft = directory.join(".job.json.new");
        let text = serde_json::to_string_pretty(self).map_err(|e| JobFileError::Malformed {
            path: path.clone(),
            problem: e.to_string(),
        })?;
        let write = || -> io::Result<()> {
            // A draft left by a crash may have any mode: it is made anew.
            match fs::remove_file(&draft) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(directory)?.sync_all()
        };
        write().map_err(|source| JobFileError::Io {
            path: path.clone(),
            action: "write it",
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn job() -> JobFile {
        JobFile {
            format: FORMAT,
            job: "j".into(),
            launch: "l".into(),
            name: "n".into(),
            state: JobState::Running,
            reason: None,
            exit_status: None,
            addresses: vec!["127.0.0.1:1".into()],
            key: Key::random().unwrap(),
            coordinator: Process::this(),
            ranks: 4,
            processes: vec![],
            mpi: "openmpi".into(),
            command: vec!["a b".into()],
            working_directory: "/".into(),
            restarted_from: None,
            recovers: None,
            epoch: Some(3),
            started: 1,
            ended: None,
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
    fn a_process_is_known_by_more_than_its_number() {
        let this = Process::this();
        assert_eq!(this.alive(), Some(true));
        let mut earlier = this.clone();
        earlier.start_time -= 1;
        assert_eq!(earlier.alive(), Some(false));
        let mut elsewhere = this;
        elsewhere.host.push_str("-other");
        assert_eq!(elsewhere.alive(), None);
    }
}
