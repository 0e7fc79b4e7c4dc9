//! Which jobs this user has on this host: one small file a launch, so that `stillpoint status` and
//! TARGET as a name need no daemon.
//!
//! The files are hints: what a job does is asked of its coordinator or read from its job.json. They lie
//! in `$XDG_RUNTIME_DIR/stillpoint`, or `/tmp/stillpoint-UID` where a session has none; both are read,
//! because a launcher and a shell do not always agree. `STILLPOINT_RUNTIME_DIR` names another place, and
//! then the only one.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, Whose};
use stillpoint_protocol::job_file::JobFile;
use xxhash_rust::xxh3::xxh3_64;

const SUFFIX: &str = ".json";
/// Two names and a path: no entry is longer.
const MAX_BYTES: u64 = 64 << 10;

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub directory: PathBuf,
    pub launch: String,
}

/// The registry of one user.
#[derive(Clone, Debug)]
pub struct Registry {
    /// The first that can be made is written to.
    places: Vec<PathBuf>,
}

impl Registry {
    /// The calling user's.
    pub fn of_this_user() -> Registry {
        if let Some(place) = std::env::var_os("STILLPOINT_RUNTIME_DIR") {
            return Registry::at(place.into());
        }
        let uid = nix::unistd::getuid();
        let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // A login's own directory, also when this process was started without the variable.
        let login = PathBuf::from(format!("/run/user/{uid}"));
        let mut places: Vec<PathBuf> = session
            .into_iter()
            .chain([login])
            .filter(|place| place.is_absolute() && place.is_dir())
            .map(|place| place.join("stillpoint"))
            .collect();
        places.dedup();
        places.push(PathBuf::from(format!("/tmp/stillpoint-{uid}")));
        Registry { places }
    }

    /// A registry at one place.
    pub fn at(place: PathBuf) -> Registry {
        Registry {
            places: vec![place],
        }
    }

    /// Notes a launch.
    pub fn add(&self, entry: &Entry) -> io::Result<()> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for place in &self.places {
            match add_at(place, entry) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Forgets a launch.
    pub fn remove(&self, entry: &Entry) {
        for place in &self.places {
            // Not there is as good as removed.
            let _ = Directory::open(place, Whose::Ours)
                .and_then(|place| place.remove_file(&file(entry)));
        }
    }

    /// The launches of this user whose job.json still is theirs and says that they run. Others are
    /// forgotten.
    pub fn running(&self) -> Vec<(Entry, JobFile)> {
        let mut found: Vec<(Entry, JobFile)> = vec![];
        for entry in self.places.iter().flat_map(|place| entries(place)) {
            match JobFile::read(&entry.directory) {
                Ok(job) if job.launch == entry.launch && job.runs_here() => {
                    if found.iter().all(|(other, _)| other.launch != entry.launch) {
                        found.push((entry, job));
                    }
                }
                // A directory that cannot be read just now (network) is not forgotten.
                Err(stillpoint_protocol::job_file::JobFileError::Io { .. }) => {}
                _ => self.remove(&entry),
            }
        }
        found.sort_by(|(a, _), (b, _)| (&a.name, &a.directory).cmp(&(&b.name, &b.directory)));
        found
    }
}

/// The name of an entry's file.
fn file(entry: &Entry) -> String {
    let key = format!("{}\n{}", entry.launch, entry.directory.display());
    format!("{:016x}{SUFFIX}", xxh3_64(key.as_bytes()))
}

fn add_at(place: &Path, entry: &Entry) -> io::Result<()> {
    Directory::make(place)?.replace(&file(entry), &serde_json::to_vec(entry)?, None)
}

fn entries(place: &Path) -> Vec<Entry> {
    let Ok(place) = Directory::open(place, Whose::Ours) else {
        return vec![];
    };
    let names = place.names().unwrap_or_default();
    names
        .iter()
        .filter_map(|name| {
            let name = name.to_str().filter(|name| name.ends_with(SUFFIX))?;
            serde_json::from_slice(&place.read(name, MAX_BYTES).ok()?).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use stillpoint_protocol::Key;
    use stillpoint_protocol::job_file::{FORMAT, JobState, Process};

    fn entry(directory: &Path, launch: &str) -> Entry {
        Entry {
            name: "melt".into(),
            directory: directory.to_owned(),
            launch: launch.into(),
        }
    }

    fn job(directory: &Path, launch: &str, state: JobState) {
        let job = JobFile {
            format: FORMAT,
            job: "j".into(),
            launch: launch.into(),
            name: "melt".into(),
            state,
            reason: None,
            exit_status: None,
            addresses: vec![],
            key: Key::random().unwrap(),
            coordinator: Process::this(),
            ranks: 1,
            processes: vec![],
            mpi: "openmpi".into(),
            library: "openmpi".into(),
            command: vec![],
            working_directory: "/".into(),
            restarted_from: None,
            recovers: None,
            epoch: None,
            directory: None,
            inode: None,
            predecessors: 0,
            started: 0,
            ended: None,
            copied: false,
        };
        job.write(directory).unwrap();
    }

    #[test]
    fn a_job_that_has_ended_or_been_replaced_is_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::at(place.path().join("r"));
        let mine = entry(directory.path(), "one");
        job(directory.path(), "one", JobState::Running);
        registry.add(&mine).unwrap();
        let found = registry.running();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, mine);
        job(directory.path(), "two", JobState::Running);
        assert!(registry.running().is_empty());
        job(directory.path(), "one", JobState::Running);
        assert!(registry.running().is_empty(), "it was not forgotten");
        registry.add(&mine).unwrap();
        job(directory.path(), "one", JobState::Finished);
        assert!(registry.running().is_empty());
    }

    #[test]
    fn a_place_that_others_can_write_to_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        job(directory.path(), "one", JobState::Running);
        let registry = Registry::at(place.path().to_owned());
        let mine = entry(directory.path(), "one");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(registry.add(&mine).is_err());
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
        registry.add(&mine).unwrap();
        assert_eq!(registry.running().len(), 1);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(registry.running().is_empty());
    }
}
