//! Epochs in a checkpoint directory: which there are, and how one comes to be.
//!
//! ```text
//! DIR/epoch-000013.part/   made when the checkpoint begins, filled by the ranks
//! DIR/epoch-000013/        the same after manifest, sync and rename: committed
//! ```
//!
//! An epoch exists when its directory bears the final name, and never before everything in it, and the
//! directory itself, has reached the disk.

mod staged;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use stillpoint_image::{ImageError, Manifest, RankImage, epoch_name, epoch_of, image_name};
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

fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> EpochError {
    move |source| EpochError::Io {
        path: path.to_owned(),
        action,
        source,
    }
}

/// A checkpoint directory.
#[derive(Clone, Debug)]
pub struct Epochs {
    directory: PathBuf,
}

/// What there is in a checkpoint directory, each ascending.
#[derive(Debug, Default)]
struct Listed {
    committed: Vec<u64>,
    parts: Vec<u64>,
    staged: Vec<u64>,
}

/// What the manifest says besides the images.
#[derive(Clone, Debug, Default)]
pub struct Description {
    pub job: String,
    pub name: String,
    pub command: Vec<String>,
    pub mpi: String,
    pub compression: String,
    /// By rank.
    pub hosts: Vec<String>,
}

impl Epochs {
    pub fn new(directory: impl Into<PathBuf>) -> Epochs {
        Epochs {
            directory: directory.into(),
        }
    }

    /// Where a committed epoch is.
    pub fn path(&self, epoch: u64) -> PathBuf {
        self.directory.join(epoch_name(epoch))
    }

    /// Where an epoch is written.
    pub fn part_path(&self, epoch: u64) -> PathBuf {
        self.directory.join(format!("{}{PART}", epoch_name(epoch)))
    }

    /// The committed epochs, ascending. A directory that is not there has none.
    pub fn committed(&self) -> Result<Vec<u64>, EpochError> {
        Ok(self.listed()?.committed)
    }

    /// Removes what unfinished checkpoints have left behind. For a job that begins: nobody writes yet.
    pub fn remove_parts(&self) -> Result<(), EpochError> {
        for epoch in self.listed()?.parts {
            self.discard(epoch)?;
        }
        Ok(())
    }

    /// Makes the directory that an epoch is written to.
    pub fn prepare(&self, epoch: u64) -> Result<PathBuf, EpochError> {
        self.discard(epoch)?;
        let path = self.part_path(epoch);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(io_error(&path, "make the epoch's directory"))?;
        Ok(path)
    }

    /// Removes an epoch that is not committed.
    pub fn discard(&self, epoch: u64) -> Result<(), EpochError> {
        remove(&self.part_path(epoch))
    }

    /// Commits an epoch whose images are on disk: manifest, sync, rename, sync.
    pub fn commit(
        &self,
        epoch: u64,
        images: &[Written],
        about: &Description,
    ) -> Result<PathBuf, EpochError> {
        let part = self.part_path(epoch);
        self.describe(&part, epoch, images, about)?;
        let path = self.path(epoch);
        self.rename(&part, &path)?;
        Ok(path)
    }

    /// Writes the manifest of an epoch whose images are in `part`, and syncs it.
    fn describe(
        &self,
        part: &Path,
        epoch: u64,
        images: &[Written],
        about: &Description,
    ) -> Result<(), EpochError> {
        let mut ranks = Vec::with_capacity(images.len());
        for (rank, written) in images.iter().enumerate() {
            let file = image_name(rank as u32);
            let path = part.join(&file);
            let found = fs::metadata(&path)
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
            });
        }
        let manifest = Manifest {
            job: about.job.clone(),
            name: about.name.clone(),
            epoch,
            committed: seconds_since_1970(),
            command: about.command.clone(),
            mpi: about.mpi.clone(),
            gate_version: stillpoint_wrappers::gate::GATE_VERSION,
            stillpoint: env!("CARGO_PKG_VERSION").to_owned(),
            compression: about.compression.clone(),
            ranks,
        };
        // Syncs itself and the names of the images, which their writers may have synced without
        // their directory.
        Ok(manifest.write(part)?)
    }

    /// Gives an epoch another name, for good.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), EpochError> {
        fs::rename(from, to).map_err(io_error(from, "give the epoch its name"))?;
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        if let Err(error) = synced {
            // Whether the name lasts is not known, so the epoch must not pass for committed.
            fs::rename(to, from).map_err(io_error(to, "take the epoch's name back"))?;
            return Err(io_error(&self.directory, "sync the directory")(error));
        }
        Ok(())
    }

    /// Removes the oldest committed epochs beyond `keep`, and parts older than the newest epoch.
    /// Returns which could not be removed and why: that is no reason to fail a commit.
    pub fn prune(&self, keep: usize) -> Vec<EpochError> {
        let Listed {
            committed,
            parts,
            staged,
        } = match self.listed() {
            Ok(listed) => listed,
            Err(error) => return vec![error],
        };
        let newest = committed.last().copied().unwrap_or(0);
        let surplus = committed.len().saturating_sub(keep.max(1));
        let old = committed[..surplus].iter().map(|epoch| {
            // Renamed first: an epoch that is half-removed must not look like one.
            let (path, part) = (self.path(*epoch), self.part_path(*epoch));
            fs::rename(&path, &part).map_err(io_error(&path, "remove an older epoch"))?;
            remove(&part)
        });
        let stale = parts
            .iter()
            .filter(|epoch| **epoch < newest)
            .map(|epoch| self.discard(*epoch));
        let overtaken = staged
            .iter()
            .filter(|epoch| **epoch < newest)
            .map(|epoch| self.discard_staged(*epoch));
        old.chain(stale)
            .chain(overtaken)
            .filter_map(Result::err)
            .collect()
    }

    fn listed(&self) -> Result<Listed, EpochError> {
        let mut listed = Listed::default();
        let failed = || io_error(&self.directory, "list the directory");
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
            entries => entries.map_err(failed())?,
        };
        for entry in entries {
            let name = entry.map_err(failed())?.file_name();
            let Some(name) = name.to_str() else { continue };
            let (list, name) = match (name.strip_suffix(PART), name.strip_suffix(staged::STAGED)) {
                (Some(name), _) => (&mut listed.parts, name),
                (None, Some(name)) => (&mut listed.staged, name),
                (None, None) => (&mut listed.committed, name),
            };
            list.extend(epoch_of(name));
        }
        for list in [&mut listed.committed, &mut listed.parts, &mut listed.staged] {
            list.sort_unstable();
        }
        Ok(listed)
    }
}

fn remove(path: &Path) -> Result<(), EpochError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error(path, "remove it")(error))
        }
        _ => Ok(()),
    }
}

/// The time now.
pub fn seconds_since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    pub(super) fn written(part: &Path, rank: u32, bytes: usize) -> Written {
        fs::write(part.join(image_name(rank)), vec![0; bytes]).unwrap();
        Written {
            stored_bytes: bytes as u64,
            bytes: 0,
            digest: 7,
            seconds: 0.0,
        }
    }

    fn commit(epochs: &Epochs, epoch: u64) -> Result<PathBuf, EpochError> {
        let part = epochs.prepare(epoch)?;
        let images = [written(&part, 0, 10), written(&part, 1, 20)];
        epochs.commit(epoch, &images, &Description::default())
    }

    #[test]
    fn an_epoch_is_there_only_when_it_is_committed() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = Epochs::new(directory.path());
        let part = epochs.prepare(1).unwrap();
        let mode = fs::metadata(&part).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(epochs.committed().unwrap().is_empty());
        let images = [written(&part, 0, 10)];
        let path = epochs.commit(1, &images, &Description::default()).unwrap();
        assert_eq!(epochs.committed().unwrap(), [1]);
        let manifest = Manifest::read(&path).unwrap();
        assert_eq!((manifest.epoch, manifest.ranks.len()), (1, 1));
        assert_eq!((manifest.ranks[0].bytes, manifest.ranks[0].digest), (10, 7));
    }

    #[test]
    fn an_image_of_another_length_or_none_is_not_committed() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = Epochs::new(directory.path());
        let part = epochs.prepare(1).unwrap();
        let image = written(&part, 0, 10);
        fs::write(part.join(image_name(0)), [0; 9]).unwrap();
        let commit = |images: &[Written]| epochs.commit(1, images, &Description::default());
        assert!(matches!(
            commit(std::slice::from_ref(&image)),
            Err(EpochError::WrongLength {
                rank: 0,
                found: 9,
                ..
            })
        ));
        fs::remove_file(part.join(image_name(0))).unwrap();
        assert!(commit(&[image]).is_err());
        assert!(epochs.committed().unwrap().is_empty());
    }

    #[test]
    fn older_epochs_go_and_strangers_stay() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = Epochs::new(directory.path());
        fs::create_dir(directory.path().join("epoch-notes")).unwrap();
        for epoch in 1..=4 {
            commit(&epochs, epoch).unwrap();
        }
        epochs.prepare(2).unwrap();
        epochs.prepare(9).unwrap();
        assert!(epochs.prune(2).is_empty());
        assert_eq!(epochs.committed().unwrap(), [3, 4]);
        let mut names: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        // A part that is newer than every epoch may be in the making.
        let expected = [
            "epoch-000003",
            "epoch-000004",
            "epoch-000009.part",
            "epoch-notes",
        ];
        assert_eq!(names, expected);
        epochs.remove_parts().unwrap();
        assert!(!epochs.part_path(9).exists());
    }

    #[test]
    fn at_least_one_epoch_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = Epochs::new(directory.path());
        commit(&epochs, 1).unwrap();
        commit(&epochs, 2).unwrap();
        epochs.prune(0);
        assert_eq!(epochs.committed().unwrap(), [2]);
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_epochs_and_an_error_says_what_to_do() {
        let epochs = Epochs::new("/nonexistent/d");
        assert!(epochs.committed().unwrap().is_empty());
        let error = epochs.prepare(1).unwrap_err().to_string();
        assert!(
            error.starts_with("/nonexistent/d/epoch-000001.part: cannot make"),
            "{error}"
        );
    }
}
