//! Whether a checkpoint directory is still this coordinator's.
//!
//! Its lock keeps a second job out of it. Two things can come in between:
//!
//! * The coordinator's host is cut off from the rest of its job. It cannot checkpoint anything, while the job is to be carried on elsewhere. So it
//!   lets go of the lock, and takes it again before it next changes anything, if nobody else has it by then. Whatever changes something has a
//!   [`Change`] meanwhile, and while there is one the lock stays.
//! * The locks do not hold: some file systems have none, and one that is reached over a network lets go of the locks of a host that it has not heard
//!   of for a while. So before a coordinator changes anything that others go by - job.json, the epochs - it looks whether job.json is still its own.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use stillpoint_directory::Directory;
use stillpoint_protocol::job_file::{JobFile, JobFileError};

/// How long somebody may take who looks whether a directory is free.
const A_LOOK: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A coordinator's hold on its directory.
#[derive(Debug, Default)]
pub struct Fence(Mutex<Hold>);

#[derive(Debug, Default)]
struct Hold {
    /// `None` where there are no locks.
    lock: Option<File>,
    /// Nobody else of the job can be reached: somebody else may have the directory whenever nothing is being changed.
    is_to_go: bool,
    let_go: bool,
    /// How many [`Change`]s there are.
    changes: usize,
    /// The launch that this coordinator has written into job.json, and the coordinators of it before this one.
    written: Option<(String, u32)>,
}

impl Fence {
    /// Of a coordinator that has just taken the directory.
    pub fn new(lock: Option<File>) -> Fence {
        Fence(Mutex::new(Hold {
            lock,
            ..Hold::default()
        }))
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// job.json says this from now on.
    pub fn wrote(&self, job: &JobFile) {
        self.hold().written = Some((job.launch.clone(), job.predecessors));
    }

    /// Somebody else may take the directory, now or as soon as nothing is being changed there.
    pub fn let_go(&self) {
        let mut hold = self.hold();
        hold.is_to_go = true;
        hold.let_go_if_idle();
    }

    /// It is to stay this coordinator's again. Whether it still is, the next [`Change`] finds out.
    pub fn keep(&self) {
        self.hold().is_to_go = false;
    }

    /// Begins a change of what others go by. The directory is this coordinator's until the change is dropped; or who has it now.
    ///
    /// # Errors
    /// Who has it.
    pub fn change(self: &Arc<Fence>, directory: &Directory) -> Result<Change, String> {
        let since = Instant::now();
        let was_let_go = loop {
            if let Some(was_let_go) = self.hold().take() {
                break was_let_go;
            }
            // Whoever only looks whether it is free has it for a moment.
            if since.elapsed() >= A_LOOK {
                return Err("another job has this directory now".to_owned());
            }
            sleep(PAUSE);
        };
        let change = Change(Arc::clone(self));
        let written = self.hold().written.clone();
        let held = written.map_or(Ok(()), |own| is_of(&own, directory));
        if held.is_err() && was_let_go {
            // It is theirs.
            self.hold().is_to_go = true;
        }
        held.map(|()| change)
    }
}

/// Something that is being changed in the directory.
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
            // What cannot be unlocked stays locked.
            let unlocked = self.lock.as_ref().map(File::unlock);
            self.let_go = unlocked.is_none_or(|unlocked| unlocked.is_ok());
        }
    }

    /// Counts a change, and takes the lock for it; whether it had been let go. `None`: somebody else has it.
    fn take(&mut self) -> Option<bool> {
        if self.let_go && matches!(self.lock.as_ref().map(File::try_lock), Some(Err(_))) {
            return None;
        }
        self.changes += 1;
        Some(std::mem::take(&mut self.let_go))
    }
}

/// Whether the directory is still this coordinator's: whether job.json is of its launch, and of no later coordinator. One that was removed is nobody's, and so is one that no release writes.
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
        "another coordinator has this directory now: process {} on {}, of '{name}'",
        coordinator.pid, coordinator.host
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use stillpoint_directory::Whose;

    fn locked(place: &Path) -> (Arc<Fence>, Directory, File) {
        let directory = Directory::open(place, Whose::Ours).unwrap();
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
        let directory = Directory::open(place.path(), Whose::Ours).unwrap();
        let fence = Arc::new(Fence::new(None));
        fence.hold().written = Some(("launch".to_owned(), 0));
        let path = JobFile::path(place.path());
        for (text, ours) in [
            ("", true),
            ("{", true),
            ("not JSON", true),
            // A later release has it.
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
        let directory = Directory::open(place.path(), Whose::Ours).unwrap();
        let fence = Arc::new(Fence::new(None));
        fence.let_go();
        assert!(fence.change(&directory).is_ok());
    }
}
