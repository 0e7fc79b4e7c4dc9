//! Epochs in a checkpoint directory: which there are, and how one comes to be.
//!
//! ```text
//! DIR/epoch-000013.7c1e02ab.part/   made when the checkpoint begins, filled by the ranks
//! DIR/epoch-000013/                 the same after manifest, sync and rename: committed
//! ```
//!
//! An epoch exists when its directory bears the final name, and never before everything in it, and the
//! directory itself, has reached the disk.
//!
//! Everything is done in the directory that was held when the job began, and none of it when the directory's path leads
//! elsewhere by now. The part's name has a mark of the coordinator's own: ranks write by path, and what they write must not
//! come to an epoch of another job that has made its directory there meanwhile.

mod keep;
mod staged;
#[cfg(test)]
mod tests;

pub use staged::staged_name;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use stillpoint_directory::{Directory, Whose};
use stillpoint_faults::{Point, strike};
use stillpoint_image::{ImageError, Manifest, RankImage, epoch_name, epoch_of, image_name};
use stillpoint_incremental::viability::Record;
use stillpoint_protocol::agent::Written;

const PART: &str = ".part";

/// Why an epoch cannot be made, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    #[error("{}: cannot {action}: {source}{}", path.display(), advice(source))]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error("{}: {found} bytes long, but rank {rank} wrote {expected}", path.display())]
    WrongLength {
        path: PathBuf,
        rank: usize,
        found: u64,
        expected: u64,
    },
    #[error(
        "the image of rank {rank} has contract {found:08x} between its halves, that of rank 0 has {expected:08x}: start every rank with one \
         Stillpoint build"
    )]
    Contract {
        rank: usize,
        found: u32,
        expected: u32,
    },
    #[error(
        "{}: epoch {epoch} has parts in epoch {needed}, which is not there: leave the epochs in their directory while the job runs",
        path.display()
    )]
    Base {
        path: PathBuf,
        epoch: u64,
        needed: u64,
    },
    #[error(transparent)]
    Image(#[from] ImageError),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space or choose another --dir"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a directory that this user may write to (--dir)"
        }
        _ => "",
    }
}

fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> EpochError + use<> {
    let path = path.to_owned();
    move |source| EpochError::Io {
        path,
        action,
        source,
    }
}

/// The epochs of a checkpoint directory.
#[derive(Clone, Debug)]
pub struct Epochs {
    directory: Directory,
    mark: Mark,
}

/// What the parts of one coordinator's attempts are known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    pub fn random() -> io::Result<Mark> {
        let random = String::from(stillpoint_protocol::Key::random()?);
        Ok(Mark(random[..8].to_owned()))
    }

    /// Of whoever writes nothing.
    pub fn none() -> Mark {
        Mark(String::new())
    }

    /// The name of the directory that an epoch is written to.
    pub fn part(&self, epoch: u64) -> String {
        format!("{}.{}{PART}", epoch_name(epoch), self.0)
    }
}

/// What there is in a checkpoint directory, each ascending.
#[derive(Debug, Default)]
struct Listed {
    committed: Vec<u64>,
    /// With their names.
    parts: Vec<(u64, String)>,
    staged: Vec<u64>,
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

/// What the manifest says besides the images.
#[derive(Clone, Debug, Default)]
pub struct Description {
    pub job: String,
    pub name: String,
    pub command: Vec<String>,
    pub mpi: String,
    pub library: String,
    pub compression: String,
    /// By rank.
    pub hosts: Vec<String>,
}

impl Epochs {
    /// Those of a directory that is held, to add to them.
    pub fn of(directory: Directory, mark: Mark) -> Epochs {
        Epochs { directory, mark }
    }

    /// Those of the directory at a path, to look at them.
    pub fn at(path: &Path, whose: Whose) -> Result<Epochs, EpochError> {
        let directory = Directory::open(path, whose).map_err(io_error(path, "open it"))?;
        Ok(Epochs::of(directory, Mark::none()))
    }

    /// Where a committed epoch is.
    pub fn path(&self, epoch: u64) -> PathBuf {
        self.directory.path().join(epoch_name(epoch))
    }

    fn named(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The committed epochs, ascending.
    pub fn committed(&self) -> Result<Vec<u64>, EpochError> {
        Ok(self.listed()?.committed)
    }

    /// Removes what unfinished checkpoints have left behind. For a job that begins: nobody writes yet.
    pub fn remove_parts(&self) -> Result<(), EpochError> {
        for (_, name) in self.listed()?.parts {
            self.remove(&name, Point::PartsRemove)?;
        }
        Ok(())
    }

    /// Refuses when the directory is not the one any more that others find by its path.
    fn in_place(&self) -> Result<(), EpochError> {
        let path = self.directory.path();
        let still = self.directory.still_at_its_path();
        still.map_err(io_error(path, "keep epochs there"))
    }

    /// Makes the directory that an epoch is written to.
    pub fn prepare(&self, epoch: u64) -> Result<PathBuf, EpochError> {
        self.in_place()?;
        let name = self.mark.part(epoch);
        self.remove(&name, Point::EpochClear)?;
        let path = self.named(&name);
        self.directory
            .make_below(&name, Some(Point::EpochMake))
            .map_err(io_error(&path, "make the epoch's directory"))?;
        Ok(path)
    }

    /// Removes an epoch that is not committed.
    pub fn discard(&self, epoch: u64) -> Result<(), EpochError> {
        self.remove(&self.mark.part(epoch), Point::EpochDiscard)
    }

    /// Commits an epoch whose images are on disk: manifest, sync, rename, sync.
    pub fn commit(
        &self,
        epoch: u64,
        images: &[Written],
        about: &Description,
    ) -> Result<PathBuf, EpochError> {
        let part = self.mark.part(epoch);
        self.in_place()?;
        strike(Point::Commit).map_err(io_error(self.directory.path(), "commit an epoch there"))?;
        self.describe(&part, epoch, images, about)?;
        self.in_place()?;
        self.rename(&part, &epoch_name(epoch), Naming::COMMITTED)?;
        Ok(self.path(epoch))
    }

    /// Writes the manifest of an epoch whose images are in `part`, and syncs it.
    fn describe(
        &self,
        part: &str,
        epoch: u64,
        images: &[Written],
        about: &Description,
    ) -> Result<(), EpochError> {
        let needs = self.needs_of(epoch, images)?;
        let held = self.directory.below(part);
        let part = held.map_err(io_error(&self.named(part), "open the epoch's directory"))?;
        let mut ranks = Vec::with_capacity(images.len());
        for (rank, written) in images.iter().enumerate() {
            let file = image_name(rank as u32);
            let path = part.path().join(&file);
            let found = part
                .open_file(&file)
                .and_then(|image| image.metadata())
                .map_err(io_error(&path, "find the image"))?
                .len();
            if found != written.stored_bytes {
                return Err(EpochError::WrongLength {
                    path,
                    rank,
                    found,
                    expected: written.stored_bytes,
                });
            }
            ranks.push(RankImage {
                rank: rank as u32,
                file,
                bytes: written.stored_bytes,
                digest: written.digest,
                hostname: about.hosts.get(rank).cloned().unwrap_or_default(),
                // A number that is none could not be read again.
                increment: written
                    .increment
                    .as_deref()
                    .copied()
                    .filter(Record::is_sound),
            });
        }
        let manifest = Manifest {
            job: about.job.clone(),
            name: about.name.clone(),
            epoch,
            committed: seconds_since_1970(),
            command: about.command.clone(),
            mpi: about.mpi.clone(),
            library: about.library.clone(),
            gate_version: contract_of(images)?,
            stillpoint: env!("CARGO_PKG_VERSION").to_owned(),
            compression: about.compression.clone(),
            needs,
            ranks,
        };
        // Syncs itself and the names of the images, which their writers may have synced without
        // their directory.
        Ok(manifest.write_in(&part)?)
    }

    /// Gives an epoch another name, for good.
    fn rename(&self, from: &str, to: &str, steps: Naming) -> Result<(), EpochError> {
        let directory = &self.directory;
        let failed = |name: &str, action| io_error(&self.named(name), action);
        directory
            .rename(from, to, Some(steps.rename))
            .map_err(failed(from, "give the epoch its name"))?;
        if let Err(error) = directory.sync(Some(steps.sync)) {
            // Whether the name lasts is not known, so the epoch must not pass for committed.
            directory
                .rename(to, from, Some(steps.back))
                .map_err(failed(to, "take the epoch's name back"))?;
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

/// The contract that the images of an epoch have in common.
fn contract_of(images: &[Written]) -> Result<u32, EpochError> {
    let expected = images.first().map_or(0, |image| image.contract);
    let mut others = images.iter().enumerate();
    match others.find(|(_, image)| image.contract != expected) {
        None => Ok(expected),
        Some((rank, image)) => Err(EpochError::Contract {
            rank,
            found: image.contract,
            expected,
        }),
    }
}

/// The time now.
pub fn seconds_since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
