//! The epochs of a checkpoint directory, and the steps by which an epoch is committed.
//!
//! ```text
//! DIR/epoch-000013.7c1e02ab.part/   made when the checkpoint begins, filled by the ranks
//! DIR/epoch-000013/                 the same after manifest, sync and rename: committed
//! ```
//!
//! An epoch exists when its directory has the final name. It never gets that name before all its files, and the directory itself, have reached the disk.
//!
//! All steps use the directory that was held when the job began, and they fail if its path leads elsewhere by now. The part's name has a mark of the
//! coordinator's own. Ranks write by path, and another job may have made its directory there meanwhile: their data must not come to an epoch of that job.

mod error;
mod keep;
mod manifest;
mod owner;
mod staged;
#[cfg(test)]
mod tests;

pub use error::EpochError;
use error::io_error;
pub use manifest::Description;
pub use staged::staged_name;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_faults::{Point, strike};
use stillpoint_ids::Epoch;
use stillpoint_image::{epoch_name, epoch_of};
use stillpoint_protocol::agent::Written;

use crate::fence::{Change, Fence};

const PART: &str = ".part";

/// The epochs of a checkpoint directory.
#[derive(Clone, Debug)]
pub struct Epochs {
    directory: Directory,
    mark: Mark,
    /// The coordinator's right to the directory; `None`: it is not checked.
    fence: Option<Arc<Fence>>,
}

/// The mark in the names of parts, by which one coordinator knows its own attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    pub fn random() -> io::Result<Mark> {
        let random = String::from(stillpoint_protocol::Key::random()?);
        Ok(Mark(random[..8].to_owned()))
    }

    /// The mark of a process that only reads.
    pub fn none() -> Mark {
        Mark(String::new())
    }

    /// The name of the directory that an epoch is written to.
    pub fn part(&self, epoch: Epoch) -> String {
        format!("{}.{}{PART}", epoch_name(epoch), self.0)
    }
}

/// The directory is this coordinator's, and stays so until this is dropped.
#[derive(Debug, Default)]
#[must_use = "the directory is kept only as long as this is"]
struct Changing {
    _change: Option<Change>,
}

/// The contents of a checkpoint directory, each list ascending.
#[derive(Debug, Default)]
struct Listed {
    committed: Vec<Epoch>,
    /// With the names of their directories.
    parts: Vec<(Epoch, String)>,
    staged: Vec<Epoch>,
}

/// The fault points of the steps by which an epoch gets its name.
#[derive(Clone, Copy)]
struct Naming {
    rename: Point,
    sync: Point,
    back: Point,
}

impl Naming {
    const COMMITTED: Naming = Naming {
        rename: Point::EpochRename,
        sync: Point::EpochSync,
        back: Point::EpochRenameBack,
    };
    const STAGED: Naming = Naming {
        rename: Point::StagedRename,
        sync: Point::StagedSync,
        back: Point::StagedRenameBack,
    };
    const DURABLE: Naming = Naming {
        rename: Point::DurableRename,
        sync: Point::DurableSync,
        back: Point::DurableRenameBack,
    };
}

impl Epochs {
    /// The epochs of a directory that is held, to add to them.
    pub fn of(directory: Directory, mark: Mark) -> Epochs {
        Epochs {
            directory,
            mark,
            fence: None,
        }
    }

    /// The same, as long as the directory is the coordinator's.
    pub fn behind(self, fence: Arc<Fence>) -> Epochs {
        Epochs {
            fence: Some(fence),
            ..self
        }
    }

    /// The epochs of the directory at a path, to look at them.
    pub fn at(path: &Path, whose: RequiredOwner) -> Result<Epochs, EpochError> {
        let directory = Directory::open(path, whose).map_err(io_error(path, "open it"))?;
        Ok(Epochs::of(directory, Mark::none()))
    }

    /// The path of a committed epoch.
    pub fn path(&self, epoch: Epoch) -> PathBuf {
        self.directory.path().join(epoch_name(epoch))
    }

    fn named(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The committed epochs, ascending.
    pub fn committed(&self) -> Result<Vec<Epoch>, EpochError> {
        Ok(self.listed()?.committed)
    }

    /// Removes the parts that unfinished checkpoints have left. Only a job that begins may call it, since no rank writes yet.
    pub fn remove_parts(&self) -> Result<(), EpochError> {
        for (_, name) in self.listed()?.parts {
            self.remove(&name, Point::PartsRemove)?;
        }
        Ok(())
    }

    /// Begins a change of the directory's contents. Fails if the directory's path leads elsewhere now, or another coordinator has the directory.
    fn in_place(&self) -> Result<Changing, EpochError> {
        let path = self.directory.path();
        let still = self.directory.still_at_its_path();
        still.map_err(io_error(path, "keep epochs in it"))?;
        self.change()
    }

    /// The same, even if the directory's path leads elsewhere.
    fn change(&self) -> Result<Changing, EpochError> {
        let fence = self.fence.as_ref();
        let change = fence.map(|fence| fence.change(&self.directory));
        let change = change.transpose().map_err(|by| EpochError::Taken {
            path: self.directory.path().to_owned(),
            by,
        });
        Ok(Changing { _change: change? })
    }

    /// Lets another job take the directory, whenever no change is under way.
    pub fn let_go(&self) {
        if let Some(fence) = &self.fence {
            fence.let_go();
        }
    }

    /// Takes the directory again, if it was released and no other job has it, and keeps it.
    pub fn take_again(&self) -> Result<(), EpochError> {
        if let Some(fence) = &self.fence {
            fence.keep();
        }
        self.in_place().map(drop)
    }

    /// Makes the directory that an epoch is written to.
    pub fn prepare(&self, epoch: Epoch) -> Result<PathBuf, EpochError> {
        let _changing = self.in_place()?;
        let name = self.mark.part(epoch);
        self.remove(&name, Point::EpochClear)?;
        let path = self.named(&name);
        self.directory
            .make_below(&name, Some(Point::EpochMake))
            .map_err(io_error(&path, "make the epoch's directory"))?;
        Ok(path)
    }

    /// Removes an epoch that is not committed.
    pub fn discard(&self, epoch: Epoch) -> Result<(), EpochError> {
        let _changing = self.change()?;
        self.remove(&self.mark.part(epoch), Point::EpochDiscard)
    }

    /// Commits an epoch whose images are on disk: manifest, sync, rename, sync.
    pub fn commit(
        &self,
        epoch: Epoch,
        images: &[Written],
        about: &Description,
    ) -> Result<PathBuf, EpochError> {
        let part = self.mark.part(epoch);
        let _changing = self.in_place()?;
        strike(Point::Commit).map_err(io_error(self.directory.path(), "commit an epoch in it"))?;
        self.describe(&part, epoch, images, about)?;
        let _still = self.in_place()?;
        self.rename(&part, &epoch_name(epoch), Naming::COMMITTED)?;
        Ok(self.path(epoch))
    }

    /// Gives an epoch another name, and makes that durable.
    fn rename(&self, from: &str, to: &str, steps: Naming) -> Result<(), EpochError> {
        let directory = &self.directory;
        let failed = |name: &str, action| io_error(&self.named(name), action);
        directory
            .rename(from, to, Some(steps.rename))
            .map_err(failed(from, "give the epoch its name"))?;
        if let Err(error) = directory.sync(Some(steps.sync)) {
            // The name may not last, so the epoch must not pass for committed.
            directory
                .rename(to, from, Some(steps.back))
                .map_err(failed(to, "undo the naming of the epoch"))?;
            return Err(io_error(directory.path(), "sync the directory")(error));
        }
        Ok(())
    }

    fn listed(&self) -> Result<Listed, EpochError> {
        let mut listed = Listed::default();
        let names = self.directory.names();
        let names = names.map_err(io_error(self.directory.path(), "list the directory"))?;
        for name in names {
            let Some(name) = name.to_str() else { continue };
            if let Some(part) = name.strip_suffix(PART) {
                let epoch = part.split_once('.').map_or(part, |(epoch, _)| epoch);
                let epoch = epoch_of(epoch);
                listed
                    .parts
                    .extend(epoch.map(|epoch| (epoch, name.to_owned())));
            } else if let Some(staged) = name.strip_suffix(staged::STAGED) {
                listed.staged.extend(epoch_of(staged));
            } else {
                listed.committed.extend(epoch_of(name));
            }
        }
        listed.parts.sort_unstable();
        listed.committed.sort_unstable();
        listed.staged.sort_unstable();
        Ok(listed)
    }

    fn remove(&self, name: &str, at: Point) -> Result<(), EpochError> {
        let removed = self.directory.remove_all(name, Some(at));
        removed.map_err(io_error(&self.named(name), "remove it"))
    }
}

/// The current time, in seconds since 1970.
pub fn seconds_since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
