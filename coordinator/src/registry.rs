//! The jobs of this user on this host: one small file for each launch, so that `stillpoint status` and TARGET as a name need no daemon. Every host that has
//! ranks of the job has the file.
//!
//! The files are hints: the state of a job comes from its coordinator or its job.json. They lie in `/run/stillpoint/UID` if the machine has
//! `/run/stillpoint`, else in `$XDG_RUNTIME_DIR/stillpoint`, or in `/tmp/stillpoint-UID` if the session has no such directory. All are read, because a
//! launcher and a shell do not always agree. `STILLPOINT_RUNTIME_DIR` names another place, which is then the only one.
//!
//! A suspended job is recorded in the folder `suspended` beside, until it is carried on.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_protocol::job_file::{JobFile, JobFileError, JobState};
use xxhash_rust::xxh3::xxh3_64;

/// The folder in which every user of the machine may have a directory, as in `/tmp`. `tmpfiles.d` or root makes it.
const SHARED: &str = "/run/stillpoint";
/// The folder of suspended jobs.
const SUSPENDED: &str = "suspended";
const SUFFIX: &str = ".json";
/// The longest entry: two names and a path.
const MAX_BYTES: u64 = 64 << 10;

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub directory: PathBuf,
    pub launch: String,
    /// The addresses at which its coordinator listens.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The batch system's name of the job.
    #[serde(default)]
    pub batch: Option<Batch>,
    /// The group that its processes run in.
    #[serde(default)]
    pub group: Option<u32>,
}

/// A job of a batch system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The name by which users ask for it: `17`, or `17_3` for one of an array.
    pub id: String,
    /// Its number, which is unique.
    pub number: String,
    /// Whether it is a job of Slurm, which can start it again.
    #[serde(default)]
    pub slurm: bool,
}

impl Batch {
    /// Whether an operator who says `job` means this one: by its number, by its place in its array, or by its array.
    pub fn is_meant(&self, job: &str) -> bool {
        let array = self.id.split_once('_').map(|(array, _)| array);
        [Some(self.id.as_str()), Some(&self.number), array].contains(&Some(job))
    }
}

/// The registry of one user.
#[derive(Clone, Debug)]
pub struct Registry {
    /// Possible places. Entries are written to the first that can be made.
    places: Vec<PathBuf>,
}

impl Registry {
    /// The registry of the calling user.
    pub fn of_this_user() -> Registry {
        if let Some(place) = std::env::var_os("STILLPOINT_RUNTIME_DIR") {
            return Registry::at(place.into());
        }
        let uid = nix::unistd::getuid();
        let shared = Path::new(SHARED);
        let shared = is_shared(shared).then(|| shared.join(uid.to_string()));
        let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // A login's own directory, even if this process was started without the variable.
        let login = PathBuf::from(format!("/run/user/{uid}"));
        let sessions = session
            .into_iter()
            .chain([login])
            .filter(|place| place.is_absolute() && place.is_dir())
            .map(|place| place.join("stillpoint"));
        let mut places: Vec<PathBuf> = shared.into_iter().chain(sessions).collect();
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

    /// Records a launch.
    pub fn add(&self, entry: &Entry) -> io::Result<()> {
        add_to(&self.places, entry)
    }

    /// Forgets a launch.
    pub fn remove(&self, entry: &Entry) {
        remove_from(&self.places, entry);
    }

    /// Records that a launch was suspended.
    pub fn set_aside(&self, entry: &Entry) -> io::Result<()> {
        add_to(&self.aside(), entry)
    }

    /// The jobs that are suspended by their own job.json, and were not carried on. Others are forgotten.
    pub fn suspended(&self) -> Vec<(Entry, JobFile)> {
        let aside = self.aside();
        let mut found = vec![];
        for entry in all(&aside) {
            match JobFile::read(&entry.directory) {
                Ok(job) if job.launch == entry.launch && job.state == JobState::Suspended => {
                    found.push((entry, job));
                }
                Err(JobFileError::Io { .. } | JobFileError::Malformed { .. }) => {}
                _ => remove_from(&aside, &entry),
            }
        }
        found
    }

    fn aside(&self) -> Vec<PathBuf> {
        let aside = self.places.iter().map(|place| place.join(SUSPENDED));
        aside.collect()
    }

    /// All entries. Only the registry itself is looked at.
    pub fn listed(&self) -> Vec<Entry> {
        all(&self.places)
    }

    /// Reads the job file of a recorded launch. Returns `None` if the launch does not run, and forgets it then.
    pub fn look(&self, entry: &Entry) -> Option<Result<JobFile, JobFileError>> {
        match JobFile::read(&entry.directory) {
            Ok(job) if job.launch == entry.launch && job.runs_here() => Some(Ok(job)),
            // The directory or the file cannot be read just now (network), so the job may run.
            Err(error @ (JobFileError::Io { .. } | JobFileError::Malformed { .. })) => {
                Some(Err(error))
            }
            _ => {
                self.remove(entry);
                None
            }
        }
    }

    /// The launches of this user that run, by their own job.json. Others are forgotten.
    pub fn running(&self) -> Vec<(Entry, JobFile)> {
        let mut found: Vec<(Entry, JobFile)> = vec![];
        for entry in self.listed() {
            if let Some(Ok(job)) = self.look(&entry) {
                found.push((entry, job));
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

/// Whether the machine has a folder for all its users: it is root's, and no user can remove another's files there.
fn is_shared(place: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let about = std::fs::symlink_metadata(place);
    about.is_ok_and(|about| about.is_dir() && about.uid() == 0 && about.mode() & 0o1777 == 0o1777)
}

/// Makes that folder, if the caller may (root).
pub fn make_shared_place() -> io::Result<()> {
    use rustix::fs::{Mode, chmodat, mkdirat};
    use rustix::io::Errno;
    let all = Mode::SVTX | Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match mkdirat(rustix::fs::CWD, SHARED, all) {
        // The mode is set apart from the umask.
        Ok(()) => Ok(chmodat(
            rustix::fs::CWD,
            SHARED,
            all,
            rustix::fs::AtFlags::empty(),
        )?),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Records a launch in the first place that can be made.
fn add_to(places: &[PathBuf], entry: &Entry) -> io::Result<()> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for place in places {
        match add_at(place, entry) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn remove_from(places: &[PathBuf], entry: &Entry) {
    for place in places {
        // A missing file is as good as a removed one.
        let _ = Directory::open(place, RequiredOwner::Ours)
            .and_then(|place| place.remove_file(&file(entry)));
    }
}

/// Every recorded launch, once.
fn all(places: &[PathBuf]) -> Vec<Entry> {
    let mut found: Vec<Entry> = vec![];
    for entry in places.iter().flat_map(|place| entries(place)) {
        let known =
            |other: &Entry| other.launch == entry.launch && other.directory == entry.directory;
        if !found.iter().any(known) {
            found.push(entry);
        }
    }
    found
}

fn add_at(place: &Path, entry: &Entry) -> io::Result<()> {
    Directory::make(place)?.replace(&file(entry), &serde_json::to_vec(entry)?, None)
}

fn entries(place: &Path) -> Vec<Entry> {
    let Ok(place) = Directory::open(place, RequiredOwner::Ours) else {
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
    use stillpoint_protocol::job_file::{FORMAT, Process};

    fn entry(directory: &Path, launch: &str) -> Entry {
        Entry {
            name: "melt".into(),
            directory: directory.to_owned(),
            launch: launch.into(),
            addresses: vec![],
            batch: None,
            group: None,
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
            silence: Default::default(),
            coordinator: Process::this(),
            ranks: 1,
            processes: vec![],
            mpi: "openmpi".into(),
            library: "openmpi".into(),
            command: vec![],
            working_directory: "/".into(),
            restarted_from: None,
            origin: None,
            recovers: None,
            suspended_by: None,
            not_suspended: None,
            requeued: None,
            interval: None,
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
    fn a_suspended_job_is_kept_until_it_is_carried_on() {
        let place = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::at(place.path().join("r"));
        let mine = entry(directory.path(), "one");
        registry.set_aside(&mine).unwrap();
        job(directory.path(), "one", JobState::Suspended);
        assert!(registry.running().is_empty());
        assert_eq!(registry.suspended().len(), 1);
        job(directory.path(), "two", JobState::Running);
        assert!(registry.suspended().is_empty());
        job(directory.path(), "one", JobState::Suspended);
        assert!(registry.suspended().is_empty(), "it was not forgotten");
    }

    #[test]
    fn a_job_whose_file_is_broken_may_run_and_is_not_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::at(place.path().join("r"));
        registry.add(&entry(directory.path(), "one")).unwrap();
        fs::write(JobFile::path(directory.path()), "{").unwrap();
        assert!(registry.running().is_empty());
        let listed = registry.listed();
        assert_eq!(listed.len(), 1);
        assert!(registry.look(&listed[0]).unwrap().is_err());
    }

    #[test]
    fn an_operator_means_a_task_a_job_or_an_array() {
        let batch = Batch {
            id: "17_3".into(),
            number: "20".into(),
            slurm: true,
        };
        for (job, meant) in [
            ("17_3", true),
            ("20", true),
            ("17", true),
            ("3", false),
            ("1", false),
        ] {
            assert_eq!(batch.is_meant(job), meant, "{job}");
        }
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
