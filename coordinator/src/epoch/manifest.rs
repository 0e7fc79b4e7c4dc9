//! The manifest of an epoch: its images, and a description of the job.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::{Manifest, RankImage, image_name};
use stillpoint_incremental::viability::Record;
use stillpoint_protocol::agent::Written;

use super::{EpochError, Epochs, io_error, seconds_since_1970};

/// The contents of the manifest besides the images.
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
    /// Writes the manifest of an epoch whose images are in `part`, and syncs it.
    pub(super) fn describe(
        &self,
        part: &str,
        epoch: Epoch,
        images: &[Written],
        about: &Description,
    ) -> Result<(), EpochError> {
        let needs = self.needs_of(epoch, images)?;
        let held = self.directory.below(part);
        let part = held.map_err(io_error(&self.named(part), "open the epoch's directory"))?;
        let mut ranks = Vec::with_capacity(images.len());
        for (rank, written) in Rank::of_each(images) {
            let file = image_name(rank);
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
                rank,
                file,
                bytes: written.stored_bytes,
                digest: written.digest,
                hostname: about.hosts.get(rank.index()).cloned().unwrap_or_default(),
                // A number that is not finite could not be read again.
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
        // This also syncs the names of the images: their writers may have synced the images without their directory.
        Ok(manifest.write_in(&part)?)
    }
}

/// The contract that all images of an epoch share.
fn contract_of(images: &[Written]) -> Result<u32, EpochError> {
    let expected = images.first().map_or(0, |image| image.contract);
    let mut others = Rank::of_each(images);
    match others.find(|(_, image)| image.contract != expected) {
        None => Ok(expected),
        Some((rank, image)) => Err(EpochError::Contract {
            rank,
            found: image.contract,
            expected,
        }),
    }
}
