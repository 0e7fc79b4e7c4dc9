//! The layout of a node's fast tier.
//!
//! ```text
//! FAST/JOB/owner                             the checkpoint directory that the parts belong to
//! FAST/JOB/epoch-000013/rank-000002.img      the blocks of rank 2's image that are here, each at its own offset
//! ```
//!
//! A process that finds parts left by a job looks into the job's checkpoint directory to see whether a restart needs them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_faults::{Point, Replacement, strike};
use stillpoint_ids::Epoch;

use crate::{epoch_name, epoch_of};

const OWNER: &str = "owner";
/// The length of the longest possible path.
const MAX_OWNER_BYTES: u64 = 1 << 16;

/// One job's part of a fast tier. The tier's directory may be open to everybody (`/dev/shm`); a part that belongs to another user is left
/// alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPart {
    path: PathBuf,
}

impl JobPart {
    pub fn new(fast: &Path, job: &str) -> JobPart {
        JobPart {
            path: fast.join(job),
        }
    }

    /// Returns the id and the part of every job on a fast tier.
    pub fn all(fast: &Path) -> io::Result<Vec<(String, JobPart)>> {
        let mut parts = vec![];
        for name in Directory::open(fast, RequiredOwner::Anyones)?.names()? {
            let Ok(job) = name.into_string() else {
                continue;
            };
            let part = JobPart::new(fast, &job);
            if part.held().is_ok_and(|part| part.open_file(OWNER).is_ok()) {
                parts.push((job, part));
            }
        }
        Ok(parts)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn held(&self) -> io::Result<Directory> {
        Directory::open(&self.path, RequiredOwner::Ours)
    }

    /// Makes the directory and notes the job's checkpoint directory in it.
    pub fn claim(&self, directory: &Path) -> io::Result<()> {
        // Replaced in one step, so that no reader ever sees half of it.
        Directory::make(&self.path)?.replace(
            OWNER,
            directory.as_os_str().as_bytes(),
            Some(Replacement::OWNER),
        )
    }

    /// Reads the checkpoint directory of the job.
    pub fn owner(&self) -> io::Result<PathBuf> {
        let bytes = self.held()?.read(OWNER, MAX_OWNER_BYTES)?;
        Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
    }

    /// Returns the path of an epoch's directory.
    pub fn epoch(&self, epoch: Epoch) -> PathBuf {
        self.path.join(epoch_name(epoch))
    }

    /// Makes the directory of an epoch, or opens the one that is there. Both the part and that directory have to be ours. Files are opened
    /// in the directory that was checked, whatever becomes of the names afterwards.
    pub fn make_epoch(&self, epoch: Epoch) -> io::Result<Directory> {
        strike(Point::FastMake)?;
        let (part, name) = (Directory::make(&self.path)?, epoch_name(epoch));
        part.make_below(&name, None)
    }

    /// Opens the directory of an epoch that is there.
    pub fn held_epoch(&self, epoch: Epoch) -> io::Result<Directory> {
        self.held()?.below(&epoch_name(epoch))
    }

    /// Returns the epochs of which something is kept.
    pub fn epochs(&self) -> Vec<Epoch> {
        let names = self.held().and_then(|part| part.names());
        let names = names.into_iter().flatten();
        names.filter_map(|name| epoch_of(name.to_str()?)).collect()
    }

    /// Returns the bytes that the parts of an epoch take; holes take nothing.
    pub fn bytes(&self, epoch: Epoch) -> u64 {
        let of = || -> io::Result<u64> {
            let epoch = self.held_epoch(epoch)?;
            let names = epoch.names()?;
            let files = names.iter().filter_map(|name| {
                let file = epoch.open_file(name.to_str()?).ok()?;
                Some(file.metadata().ok()?.blocks() * 512)
            });
            Ok(files.sum())
        };
        of().unwrap_or(0)
    }

    /// Removes every epoch but one. Other processes may do so at the same time.
    pub fn keep_only(&self, kept: Option<Epoch>) {
        let Ok(part) = self.held() else {
            return;
        };
        for epoch in self
            .epochs()
            .into_iter()
            .filter(|epoch| Some(*epoch) != kept)
        {
            let _ = part.remove_all(&epoch_name(epoch), None);
        }
    }

    /// Removes the job's part of the tier if no epoch is left there.
    pub fn leave(&self) {
        if let Ok(part) = self.held()
            && self.epochs().is_empty()
        {
            let _ = part.remove_file(OWNER);
            // The directory is removed only when it is empty.
            let _ = part.remove_itself();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_jobs_part_is_found_by_its_owner_and_goes_with_its_last_epoch() {
        let fast = tempfile::tempdir().unwrap();
        fs::create_dir(fast.path().join("somebody else's")).unwrap();
        let part = JobPart::new(fast.path(), "4f0c");
        part.claim(Path::new("/scratch/melt.d")).unwrap();
        for epoch in [Epoch(3), Epoch(4)] {
            fs::write(
                part.make_epoch(epoch)
                    .unwrap()
                    .path()
                    .join("rank-000000.img"),
                [1; 5000],
            )
            .unwrap();
        }
        let all = JobPart::all(fast.path()).unwrap();
        assert_eq!(all, [("4f0c".to_owned(), part.clone())]);
        assert_eq!(part.owner().unwrap(), Path::new("/scratch/melt.d"));
        assert!(
            (5000..20_000).contains(&part.bytes(Epoch(4))),
            "{}",
            part.bytes(Epoch(4))
        );
        part.keep_only(Some(Epoch(4)));
        assert_eq!(part.epochs(), [Epoch(4)]);
        part.leave();
        assert!(part.owner().is_ok(), "an epoch is left");
        part.keep_only(None);
        part.leave();
        assert!(!part.path().exists());
        assert!(fast.path().join("somebody else's").exists());
    }
}
