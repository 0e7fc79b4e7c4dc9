//! What lies where on a node's fast tier.
//!
//! ```text
//! FAST/JOB/owner                             the checkpoint directory that the parts belong to
//! FAST/JOB/epoch-000013/rank-000002.img      the blocks of rank 2's image that are here, each at its own offset
//! ```
//!
//! Whoever finds parts that a job has left looks into its checkpoint directory to see whether a restart needs them.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{epoch_name, epoch_of};

const OWNER: &str = "owner";

/// One job's part of a fast tier.
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

    /// Every job's part of a fast tier: its id and the part.
    pub fn all(fast: &Path) -> io::Result<Vec<(String, JobPart)>> {
        let mut parts = vec![];
        for entry in fs::read_dir(fast)? {
            let entry = entry?;
            let part = JobPart { path: entry.path() };
            if let Ok(job) = entry.file_name().into_string()
                && part.path.join(OWNER).is_file()
            {
                parts.push((job, part));
            }
        }
        Ok(parts)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory and says whose it is.
    pub fn claim(&self, directory: &Path) -> io::Result<()> {
        make(&self.path)?;
        let owner = self.path.join(OWNER);
        // Renamed, so that nobody ever reads half of it.
        let new = self.path.join(format!(".owner-{}", std::process::id()));
        fs::write(&new, directory.as_os_str().as_bytes())?;
        fs::rename(new, owner)
    }

    /// The checkpoint directory of the job.
    pub fn owner(&self) -> io::Result<PathBuf> {
        let bytes = fs::read(self.path.join(OWNER))?;
        Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
    }

    /// The directory of an epoch.
    pub fn epoch(&self, epoch: u64) -> PathBuf {
        self.path.join(epoch_name(epoch))
    }

    /// Makes the directory of an epoch.
    pub fn make_epoch(&self, epoch: u64) -> io::Result<PathBuf> {
        let directory = self.epoch(epoch);
        make(&directory)?;
        Ok(directory)
    }

    /// The epochs that something is kept of.
    pub fn epochs(&self) -> Vec<u64> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| epoch_of(entry.file_name().to_str()?))
            .collect()
    }

    /// Bytes that the parts of an epoch take: holes take nothing.
    pub fn bytes(&self, epoch: u64) -> u64 {
        let files = fs::read_dir(self.epoch(epoch))
            .into_iter()
            .flatten()
            .flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .map(|about| about.blocks() * 512)
            .sum()
    }

    /// Removes every epoch but one. Others may be at it at the same time.
    pub fn keep_only(&self, kept: Option<u64>) {
        for epoch in self
            .epochs()
            .into_iter()
            .filter(|epoch| Some(*epoch) != kept)
        {
            let _ = fs::remove_dir_all(self.epoch(epoch));
        }
    }

    /// Removes the job's part of the tier if no epoch is left there.
    pub fn leave(&self) {
        if self.epochs().is_empty() {
            let _ = fs::remove_file(self.path.join(OWNER));
            // Goes only when it is empty.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_part_is_found_by_its_owner_and_goes_with_its_last_epoch() {
        let fast = tempfile::tempdir().unwrap();
        fs::create_dir(fast.path().join("somebody else's")).unwrap();
        let part = JobPart::new(fast.path(), "4f0c");
        part.claim(Path::new("/scratch/melt.d")).unwrap();
        for epoch in [3, 4] {
            fs::write(
                part.make_epoch(epoch).unwrap().join("rank-000000.img"),
                [1; 5000],
            )
            .unwrap();
        }
        let all = JobPart::all(fast.path()).unwrap();
        assert_eq!(all, [("4f0c".to_owned(), part.clone())]);
        assert_eq!(part.owner().unwrap(), Path::new("/scratch/melt.d"));
        assert!((5000..20_000).contains(&part.bytes(4)), "{}", part.bytes(4));
        part.keep_only(Some(4));
        assert_eq!(part.epochs(), [4]);
        part.leave();
        assert!(part.owner().is_ok(), "an epoch is left");
        part.keep_only(None);
        part.leave();
        assert!(!part.path().exists());
        assert!(fast.path().join("somebody else's").exists());
    }
}
