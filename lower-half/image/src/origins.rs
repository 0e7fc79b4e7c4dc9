//! Earlier images that an image has chunks in, and the tables that say which.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, Whose};

use crate::error::ImageError;
use crate::format::{ChunkRecord, NOWHERE, RunRecord};
use crate::sections::read_table;
use crate::{epoch_name, image_name};

/// An image of an earlier epoch that holds chunks of a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub epoch: u64,
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
    /// The image of a rank in an epoch, as it lies in the checkpoint directory when the epoch is committed.
    pub fn of(epoch: u64, rank: u32, bytes: u64, digest: u128) -> Origin {
        Origin {
            epoch,
            directory: epoch_name(epoch),
            file: image_name(rank),
            bytes,
            digest,
        }
    }

    /// Whether it is still there, for an image at `image` that needs it, or will.
    pub fn check(&self, image: &Path) -> Result<(), ImageError> {
        self.open(image).map(drop)
    }

    /// Opens it for the image at `image`; it must be the very one that was there when that was written.
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
        let opened = Directory::open(&checkpoints, Whose::Anyones)
            .and_then(|held| held.below(&self.directory))
            .and_then(|epoch| epoch.open_file(&self.file));
        let file = opened.map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        if bytes != self.bytes {
            let problem = format!("it has {bytes} bytes instead of {}", self.bytes);
            return Err(failed(problem, None));
        }
        let (_, digest) = read_table(&file, &path, bytes).map_err(|error| {
            let text = error.to_string();
            let named = format!("{}: ", path.display());
            failed(text.strip_prefix(&named).unwrap_or(&text).to_owned(), None)
        })?;
        if digest != self.digest {
            let problem = format!(
                "it is another image than was there before: its digest is {digest:032x} instead of {:032x}",
                self.digest
            );
            return Err(failed(problem, None));
        }
        Ok(Opened { path, file })
    }
}

/// An origin that has been checked.
#[derive(Debug)]
pub(crate) struct Opened {
    pub path: PathBuf,
    pub file: File,
}

/// The checkpoint directory in which an image's epoch lies beside others.
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

/// Which bytes of memory are where: chunks of the image itself first, then those that lie in its origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Ascending by epoch.
    pub origins: Vec<Origin>,
    pub chunks: Vec<ChunkRecord>,
    pub runs: Vec<RunRecord>,
}

/// What of an image lies in one of its origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    pub epoch: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Bytes that have to be read for them: whole chunks, as they are stored.
    pub stored_bytes: u64,
    pub chunks: u64,
}

impl Tables {
    /// The runs of a chunk, one behind the other, dead ones too.
    pub fn runs_of(&self, chunk: &ChunkRecord) -> &[RunRecord] {
        let first = chunk.first_run as usize;
        &self.runs[first..first + chunk.runs as usize]
    }

    /// Bytes of memory in a chunk.
    pub fn live_bytes(&self, chunk: &ChunkRecord) -> u64 {
        let live = self
            .runs_of(chunk)
            .iter()
            .filter(|run| run.space != NOWHERE);
        live.map(|run| u64::from(run.bytes)).sum()
    }

    /// Bytes that are in the image, its origins included, before compression.
    pub fn page_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| self.live_bytes(chunk)).sum()
    }

    /// What each origin still holds of this image, in their order.
    pub fn shares(&self) -> Vec<Share> {
        let share = |origin: &Origin| Share {
            epoch: origin.epoch,
            ..Share::default()
        };
        let mut shares: Vec<Share> = self.origins.iter().map(share).collect();
        for chunk in self.chunks.iter().filter(|chunk| chunk.origin != 0) {
            if let Some(share) = shares.get_mut(chunk.origin as usize - 1) {
                share.bytes += self.live_bytes(chunk);
                share.stored_bytes += u64::from(chunk.stored_bytes);
                share.chunks += 1;
            }
        }
        shares
    }

    /// The epochs that the image needs, ascending.
    pub fn needs(&self) -> Vec<u64> {
        self.origins.iter().map(|origin| origin.epoch).collect()
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
