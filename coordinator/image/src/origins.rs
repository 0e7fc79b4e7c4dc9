//! Other images that hold chunks of an image, and the tables that name them.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_ids::{Epoch, Rank};

use crate::error::ImageError;
use crate::format::{ChunkRecord, NOWHERE, RunRecord};
use crate::sections::read_table;
use crate::{epoch_name, image_name, rank_of};

/// An image of an earlier epoch that holds chunks of a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub epoch: Epoch,
    /// The epoch's directory, in the checkpoint directory.
    pub directory: String,
    /// The file's name there.
    pub file: String,
    /// The file's length.
    pub bytes: u64,
    /// The image's digest, 32 hex digits.
    #[serde(with = "crate::manifest::hex")]
    pub digest: u128,
}

impl Origin {
    /// Makes the origin of a rank's image in an epoch, as it lies in the checkpoint directory once the epoch is committed.
    pub fn of(epoch: Epoch, rank: Rank, bytes: u64, digest: u128) -> Origin {
        Origin {
            epoch,
            directory: epoch_name(epoch),
            file: image_name(rank),
            bytes,
            digest,
        }
    }

    /// Returns the rank whose image it is.
    pub fn rank(&self) -> Option<Rank> {
        rank_of(&self.file)
    }

    /// Checks that the origin is still there, for an image at `image` that needs it, or will need it.
    pub fn check(&self, image: &Path) -> Result<(), ImageError> {
        self.open(image).map(drop)
    }

    /// Opens the origin for the image at `image`; it must be the very file that was there when that image was written.
    pub(crate) fn open(&self, image: &Path) -> Result<Opened, ImageError> {
        let checkpoints = beside(image);
        let path = checkpoints.join(&self.directory).join(&self.file);
        let failed = |problem: String, source| ImageError::Origin {
            path: image.to_owned(),
            epoch: self.epoch,
            file: path.clone(),
            problem,
            source,
        };
        let cannot =
            |error: std::io::Error| failed(format!("it cannot be opened: {error}"), Some(error));
        let opened = Directory::open(&checkpoints, RequiredOwner::Anyones)
            .and_then(|held| held.below(&self.directory))
            .and_then(|epoch| epoch.open_file(&self.file));
        let file = opened.map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        if bytes != self.bytes {
            let problem = format!("it has {bytes} bytes instead of {}", self.bytes);
            return Err(failed(problem, None));
        }
        let (_, digest) = read_table(&file, &path, bytes)
            .map_err(|error| failed(without_name(&error, &path), None))?;
        if digest != self.digest {
            let problem = format!(
                "another image has replaced it: its digest is {digest:032x} instead of {:032x}",
                self.digest
            );
            return Err(failed(problem, None));
        }
        Ok(Opened { path, file })
    }

    /// Looks up the length and the digest of a sibling's image, now that its epoch is committed, for an image at `image`.
    pub(crate) fn settle(&mut self, image: &Path) -> Result<(), ImageError> {
        let beside = beside(image).join(&self.directory).join(&self.file);
        let sibling = Sibling::open(&beside, self.rank().unwrap_or_default())?;
        (self.bytes, self.digest) = (sibling.bytes, sibling.digest);
        Ok(())
    }
}

/// An origin that has been checked.
#[derive(Debug)]
pub(crate) struct Opened {
    pub path: PathBuf,
    pub file: File,
}

/// An image of the same epoch that holds chunks of another one.
#[derive(Debug)]
pub(crate) struct Sibling {
    pub path: PathBuf,
    pub file: File,
    pub bytes: u64,
    pub digest: u128,
}

impl Sibling {
    /// Opens the image of `rank` that lies beside `image`. The caller compares its digest with the manifest.
    pub fn open(image: &Path, rank: Rank) -> Result<Sibling, ImageError> {
        let name = image_name(rank);
        let path = image.with_file_name(&name);
        let failed = |problem: String, source| ImageError::Sibling {
            path: image.to_owned(),
            rank,
            file: path.clone(),
            problem,
            source,
        };
        let cannot =
            |error: std::io::Error| failed(format!("it cannot be opened: {error}"), Some(error));
        let directory = match image.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let opened = Directory::open(directory, RequiredOwner::Anyones)
            .and_then(|directory| directory.open_file(&name));
        let file = opened.map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        let (_, digest) = read_table(&file, &path, bytes)
            .map_err(|error| failed(without_name(&error, &path), None))?;
        Ok(Sibling {
            path,
            file,
            bytes,
            digest,
        })
    }
}

/// Returns an error's text without the path of the file, with which it begins.
fn without_name(error: &ImageError, path: &Path) -> String {
    let text = error.to_string();
    let named = format!("{}: ", path.display());
    text.strip_prefix(&named).unwrap_or(&text).to_owned()
}

/// Returns the checkpoint directory in which an image's epoch lies beside others.
fn beside(image: &Path) -> PathBuf {
    let empty = |path: &&Path| !path.as_os_str().is_empty();
    match image.parent().filter(empty) {
        None => PathBuf::from(".."),
        Some(epoch) if epoch.file_name().is_none() => epoch.join(".."),
        Some(epoch) => match epoch.parent().filter(empty) {
            None => PathBuf::from("."),
            Some(directory) => directory.to_owned(),
        },
    }
}

/// The place of every byte of memory: chunks of the image itself first, then those in its origins, then those in its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// The origins, ascending by epoch and rank.
    pub origins: Vec<Origin>,
    /// Ranks, ascending, whose images of the same epoch hold chunks of this one. The image's own rank is among them if one of its own
    /// chunks holds more than one stretch of memory. Their numbers follow those of the origins.
    pub siblings: Vec<Rank>,
    pub chunks: Vec<ChunkRecord>,
    pub runs: Vec<RunRecord>,
}

/// An image's share in one of its origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    pub epoch: Epoch,
    /// The rank whose image it is.
    pub rank: Rank,
    /// Bytes of memory.
    pub bytes: u64,
    /// Bytes that have to be read for them: whole chunks, as they are stored.
    pub stored_bytes: u64,
    pub chunks: u64,
}

/// An image's share in an image of the same epoch, its own included: chunks that were not written for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SiblingShare {
    pub rank: Rank,
    /// Bytes of memory.
    pub bytes: u64,
    /// The bytes that they would have taken in the image.
    pub stored_bytes: u64,
    pub chunks: u64,
}

/// The file that a chunk lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Itself,
    /// An origin, by its place in the list.
    Origin(usize),
    /// A sibling, by its place in the list.
    Sibling(usize),
}

impl Tables {
    /// Returns the file that a chunk of a checked table lies in.
    pub fn holder(&self, chunk: &ChunkRecord) -> Holder {
        match (chunk.origin as usize).checked_sub(1) {
            None => Holder::Itself,
            Some(origin) if origin < self.origins.len() => Holder::Origin(origin),
            Some(origin) => Holder::Sibling(origin - self.origins.len()),
        }
    }

    /// Returns the runs of a chunk, one behind the other, dead ones too.
    pub fn runs_of(&self, chunk: &ChunkRecord) -> &[RunRecord] {
        let first = chunk.first_run as usize;
        &self.runs[first..first + chunk.runs as usize]
    }

    /// Returns how many bytes of memory are in a chunk.
    pub fn live_bytes(&self, chunk: &ChunkRecord) -> u64 {
        let live = self
            .runs_of(chunk)
            .iter()
            .filter(|run| run.space != NOWHERE);
        live.map(|run| u64::from(run.bytes)).sum()
    }

    /// Returns how many bytes are in the image, its origins included, before compression.
    pub fn page_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| self.live_bytes(chunk)).sum()
    }

    /// Returns the share that each origin holds of this image, in their order.
    pub fn shares(&self) -> Vec<Share> {
        let share = |origin: &Origin| Share {
            epoch: origin.epoch,
            rank: origin.rank().unwrap_or_default(),
            ..Share::default()
        };
        let mut shares: Vec<Share> = self.origins.iter().map(share).collect();
        for chunk in &self.chunks {
            if let Holder::Origin(origin) = self.holder(chunk)
                && let Some(share) = shares.get_mut(origin)
            {
                share.bytes += self.live_bytes(chunk);
                share.stored_bytes += u64::from(chunk.stored_bytes);
                share.chunks += 1;
            }
        }
        shares
    }

    /// Returns the share that each sibling holds of this image, in their order.
    pub fn shared(&self) -> Vec<SiblingShare> {
        let shared = |rank: &Rank| SiblingShare {
            rank: *rank,
            ..SiblingShare::default()
        };
        let mut all: Vec<SiblingShare> = self.siblings.iter().map(shared).collect();
        for chunk in &self.chunks {
            if let Holder::Sibling(sibling) = self.holder(chunk)
                && let Some(shared) = all.get_mut(sibling)
            {
                shared.bytes += self.live_bytes(chunk);
                shared.stored_bytes += u64::from(chunk.stored_bytes);
                shared.chunks += 1;
            }
        }
        all
    }

    /// Returns the epochs that the image needs, ascending.
    pub fn needs(&self) -> Vec<Epoch> {
        let mut epochs: Vec<Epoch> = self.origins.iter().map(|origin| origin.epoch).collect();
        epochs.dedup();
        epochs
    }

    /// Adds a chunk with its runs.
    pub(crate) fn push(&mut self, mut chunk: ChunkRecord, runs: &[RunRecord]) {
        chunk.first_run = self.runs.len() as u32;
        chunk.runs = runs.len() as u32;
        self.runs.extend_from_slice(runs);
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_lie_beside_one_another() {
        for (image, expected) in [
            ("/d/epoch-000003/rank-000000.img", "/d"),
            ("d/epoch-000003/rank-000000.img", "d"),
            ("epoch-000003/rank-000000.img", "."),
            ("rank-000000.img", ".."),
            ("/rank-000000.img", "/.."),
            ("../rank-000000.img", "../.."),
        ] {
            assert_eq!(beside(Path::new(image)), Path::new(expected), "{image}");
        }
    }
}
