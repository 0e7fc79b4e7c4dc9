//! `stillpoint verify`: read every byte of an epoch, check every sum.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_ids::Epoch;
use stillpoint_image::mapped_files::MappedFile;
use stillpoint_image::{ImageError, Manifest};

use stillpoint_protocol::safe_text::line;

use super::units::bytes;
use super::{CommandResult, Failure, print};
use stillpoint_coordinator::epoch::{Epochs, Mark};

/// Read every byte of an epoch and compare every checksum
///
/// Ends with status 0 if the epoch is whole; otherwise names each broken file and the place in it. Reports mapped files that a
/// restart needs and that are missing or different on this machine.
#[derive(Debug, Args)]
pub struct Verify {
    /// Checkpoint directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Epoch [default: the newest]
    #[arg(long, env = "STILLPOINT_EPOCH", value_name = "K")]
    epoch: Option<Epoch>,
}

impl Verify {
    pub fn execute(self) -> CommandResult {
        let (epoch, path) = find(&self.directory, self.epoch)?;
        let manifest = manifest(epoch, &path)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut broken = Broken::default();
        let mut files: Vec<MappedFile> = vec![];
        let (mut stored, mut pages) = (0, 0);
        for entry in &manifest.ranks {
            match verify(&manifest, &path, entry, threads) {
                Ok(summary) => {
                    stored += summary.bytes;
                    pages += summary.page_bytes;
                    let more = summary.mapped_files.files;
                    for file in more {
                        if !files.iter().any(|known| known.wants_the_same(&file)) {
                            files.push(file);
                        }
                    }
                }
                Err(error) => broken.add(&error),
            }
        }
        let Broken {
            images,
            files: faults,
        } = broken;
        if images == 0 {
            return print(&format!(
                "epoch {epoch} is whole: {} images, {} on disk, {} of memory\n{}",
                manifest.ranks.len(),
                bytes(stored),
                bytes(pages),
                notes(&files)
            ));
        }
        let all = manifest.ranks.len();
        let said: Vec<String> = faults.into_values().collect();
        Err(match (said.as_slice(), images) {
            ([said], 1) => Failure::failed(format!("epoch {epoch} is broken: {said}")),
            ([said], _) => Failure::failed(format!(
                "epoch {epoch} is broken, {images} of {all} images need this file: {said}"
            )),
            _ => Failure::failed(format!(
                "epoch {epoch}: {images} of {all} images are broken"
            ))
            .listing(said),
        })
    }
}

/// The broken files, each reported once, however many images need it.
#[derive(Default)]
struct Broken {
    images: usize,
    /// The problem of each file at fault.
    files: BTreeMap<PathBuf, String>,
}

impl Broken {
    fn add(&mut self, error: &ImageError) {
        self.images += 1;
        let said = error.to_string();
        let file = error.file().to_owned();
        match self.files.entry(file) {
            Entry::Vacant(place) => {
                place.insert(said);
            }
            // The error of the file's own image is more precise.
            Entry::Occupied(mut place) => {
                if !matches!(
                    error,
                    ImageError::Origin { .. } | ImageError::Sibling { .. }
                ) {
                    place.insert(said);
                }
            }
        }
    }
}

/// Lists the mapped files for which a restart here would be refused. The epoch itself is whole.
fn notes(files: &[MappedFile]) -> String {
    let refused = files.iter().filter_map(|file| file.open().err());
    refused
        .map(|reason| {
            format!(
                "note: Stillpoint would refuse a restart on this machine: {}\n",
                line(&reason)
            )
        })
        .collect()
}

fn verify(
    manifest: &Manifest,
    path: &Path,
    entry: &stillpoint_image::RankImage,
    threads: usize,
) -> Result<stillpoint_image::Summary, stillpoint_image::ImageError> {
    let image = manifest.open_image(path, entry.rank)?;
    stillpoint_image::verify_opened(&image, threads)
}

/// The manifest of an epoch, which has to have its number.
pub fn manifest(epoch: Epoch, path: &Path) -> Result<Manifest, Failure> {
    let manifest = Manifest::read(path).map_err(|error| Failure::of(&error))?;
    if manifest.epoch == epoch {
        return Ok(manifest);
    }
    Err(Failure::failed(format!(
        "epoch {epoch} is broken: the manifest in {} is that of epoch {}: give the directory its old name again, or \
         use another epoch",
        path.display(),
        manifest.epoch
    )))
}

/// The epoch that the user means, and its directory.
pub fn find(directory: &Path, wanted: Option<Epoch>) -> Result<(Epoch, PathBuf), Failure> {
    let shown = directory.display();
    let missing = |text: String| Failure::new(Failure::MISSING, text);
    let held = Directory::open(directory, RequiredOwner::Anyones).map_err(|error| {
        let text = format!("{shown}: {error}: name a checkpoint directory");
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => missing(text),
            _ => Failure::because(&error, text),
        }
    })?;
    let epochs = Epochs::of(held, Mark::none());
    let committed = epochs.committed().map_err(|error| Failure::of(&error))?;
    let Some(newest) = committed.last().copied() else {
        return Err(missing(format!(
            "{shown}: there is no committed epoch here"
        )));
    };
    let epoch = wanted.unwrap_or(newest);
    if !committed.contains(&epoch) {
        let listed: Vec<String> = committed.iter().map(ToString::to_string).collect();
        let listed = listed.join(", ");
        return Err(missing(format!(
            "{shown}: there is no committed epoch {epoch}, only {listed}"
        )));
    }
    Ok((epoch, epochs.path(epoch)))
}
