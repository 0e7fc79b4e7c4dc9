//! The coordinator's right to its checkpoint directory.
//!
//! Its lock keeps a second job out of it. Two things can go wrong:
//!
//! * The coordinator's host is cut off from the rest of its job. It cannot write checkpoints then, and the job is to be carried on elsewhere. So it releases
//!   the lock. It takes the lock again before its next change of the directory, unless another job has it by then. Every writer holds a [`Change`] meanwhile,
//!   and while there is one the lock stays.
//! * The locks do not hold. Some file systems have none, and a network file system drops the locks of a host that has been silent for a while. So before a
//!   coordinator changes files that others rely on - job.json, the epochs - it checks that job.json is still its own.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use stillpoint_directory::Directory;
use stillpoint_protocol::job_file::{JobFile, JobFileError};

/// The time that a check whether the directory is free may take.
const A_LOOK: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A coordinator's hold on its directory.
#[derive(Debug, Default)]
pub struct Fence(Mutex<Hold>);

#[derive(Debug, Default)]
struct Hold {
    /// The locked file, if the file system has locks.
    lock: Option<File>,
    /// No other host of the job can be reached, so another job may have the directory whenever no change is under way.
    is_to_go: bool,
    let_go: bool,
    /// The number of [`Change`]s.
    changes: usize,
    /// The launch that this coordinator has written into job.json, and the number of coordinators of the launch before this one.
    written: Option<(String, u32)>,
}

impl Fence {
    /// The fence of a coordinator that has just taken the directory.
    pub fn new(lock: Option<File>) -> Fence {
        Fence(Mutex::new(Hold {
            lock,
            ..Hold::default()
        }))
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that job.json is this coordinator's from now on.
    pub fn wrote(&self, job: &JobFile) {
        self.hold().written = Some((job.launch.clone(), job.predecessors));
    }

    /// Lets another job take the directory, now or as soon as no change is under way.
    pub fn let_go(&self) {
        let mut hold = self.hold();
        hold.is_to_go = true;
        hold.let_go_if_idle();
    }

    /// Keeps the directory again. The next [`Change`] finds out whether it is still this coordinator's.
    pub fn keep(&self) {
        self.hold().is_to_go = false;
    }

    /// Begins a change of files that others rely on. The directory is this coordinator's until the change is dropped.
    ///
    /// # Errors
    /// The job that has the directory now.
    pub fn change(self: &Arc<Fence>, directory: &Directory) -> Result<Change, String> {
        let since = Instant::now();
        let was_let_go = loop {
            if let Some(was_let_go) = self.hold().take() {
                break was_let_go;
            }
            // A process that only checks whether it is free holds the lock for a moment.
            if since.elapsed() >= A_LOOK {
                return Err("another job is using this directory now".to_owned());
            }
            sleep(PAUSE);
        };
        let change = Change(Arc::clone(self));
        let written = self.hold().written.clone();
        let held = written.map_or(Ok(()), |own| is_of(&own, directory));
        if held.is_err() && was_let_go {
            // The directory belongs to the other job.
            self.hold().is_to_go = true;
        }
        held.map(|()| change)
    }
}

/// A change of the directory that is under way.
#[derive(Debug)]
#[must_use = "the directory is kept only as long as this is"]
pub struct Change(Arc<Fence>);

impl Drop for Change {
    fn drop(&mut self) {
        let mut hold = self.0.hold();
        hold.changes -= 1;
        hold.let_go_if_idle();
    }
}

impl Hold {
    fn let_go_if_idle(&mut self) {
        if self.is_to_go && self.changes == 0 && !self.let_go {
            // If unlocking fails, the lock stays.
            let unlocked = self.lock.as_ref().map(File::unlock);
            self.let_go = unlocked.is_none_or(|unlocked| unlocked.is_ok());
        }
    }

    /// Counts a change, and takes the lock for it. Returns whether the lock had been released, or `None` if another job has it.
    fn take(&mut self) -> Option<bool> {
        if self.let_go && matches!(self.lock.as_ref().map(File::try_lock), Some(Err(_))) {
            return None;
        }
        self.changes += 1;
        Some(std::mem::take(&mut self.let_go))
    }
}

/// Checks that the directory is still this coordinator's: job.json is of its launch, and of no later coordinator. If job.json was removed or is damaged, no
/// other job has the directory.
fn is_of((launch, predecessors): &(String, u32), directory: &Directory) -> Result<(), String> {
    let job = match JobFile::read_in(directory) {
        Ok(job) => job,
        Err(JobFileError::Missing { .. } | JobFileError::Malformed { damaged: true, .. }) => {
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    // A copy was written for another directory.
    if job.copied || job.launch == *launch && job.predecessors <= *predecessors {
        return Ok(());
    }
    let (name, coordinator) = (job.name, job.coordinator);
    Err(format!(
        "another coordinator is using this directory now: process {} on {}, of job '{name}'",
        coordinator.pid, coordinator.host
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use stillpoint_directory::RequiredOwner;

    fn locked(place: &Path) -> (Arc<Fence>, Directory, File) {
        let directory = Directory::open(place, RequiredOwner::Ours).unwrap();
        let open = || directory.append(".lock").unwrap();
        let (ours, theirs) = (open(), open());
        ours.lock().unwrap();
        (Arc::new(Fence::new(Some(ours))), directory, theirs)
    }

    #[test]
    fn what_was_let_go_is_taken_again_unless_somebody_else_has_it() {
        let place = tempfile::tempdir().unwrap();
        let (fence, directory, theirs) = locked(place.path());
        drop(fence.change(&directory).unwrap());
        assert!(theirs.try_lock().is_err());
        fence.let_go();
        theirs.try_lock().unwrap();
        assert!(fence.change(&directory).is_err());
        theirs.unlock().unwrap();
        let change = fence.change(&directory).unwrap();
        assert!(theirs.try_lock().is_err(), "it has not been taken again");
        drop(change);
        theirs.try_lock().expect("it is still to go");
        theirs.unlock().unwrap();
        fence.keep();
        drop(fence.change(&directory).unwrap());
        assert!(theirs.try_lock().is_err(), "it was to be kept");
    }

    #[test]
    fn nothing_is_let_go_while_something_is_being_changed() {
        let place = tempfile::tempdir().unwrap();
        let (fence, directory, theirs) = locked(place.path());
        let first = fence.change(&directory).unwrap();
        let second = fence.change(&directory).unwrap();
        fence.let_go();
        assert!(theirs.try_lock().is_err());
        drop(first);
        assert!(theirs.try_lock().is_err());
        drop(second);
        theirs.try_lock().unwrap();
    }

    #[test]
    fn a_job_file_that_says_nothing_is_nobodys() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path(), RequiredOwner::Ours).unwrap();
        let fence = Arc::new(Fence::new(None));
        fence.hold().written = Some(("launch".to_owned(), 0));
        let path = JobFile::path(place.path());
        for (text, ours) in [
            ("", true),
            ("{", true),
            ("not JSON", true),
            // A later release has written it.
            (r#"{"format": 1000000}"#, false),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(fence.change(&directory).is_ok(), ours, "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(fence.change(&directory).is_ok());
    }

    #[test]
    fn without_locks_there_is_nothing_to_let_go() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path(), RequiredOwner::Ours).unwrap();
        let fence = Arc::new(Fence::new(None));
        fence.let_go();
        assert!(fence.change(&directory).is_ok());
    }
}
