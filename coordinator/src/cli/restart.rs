//! `stillpoint restart`: carry on from a committed epoch.

use std::path::{Path, PathBuf};

use clap::Args;
use stillpoint_image::blocks::blocks_name;
use stillpoint_image::{ImageError, Manifest};
use stillpoint_protocol::job_file::JobFile;

use super::launch::Place;
use super::options::LaunchOptions;
use super::start::{Decision, absolute, make_directory, start};
use super::{Failure, Outcome};
use crate::epoch::Epochs;

/// Carry on from a committed epoch, in a fresh launch of as many ranks
///
/// mpirun -n 4 stillpoint restart /scratch/melt.d
#[derive(Debug, Args)]
pub struct Restart {
    /// Checkpoint directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The epoch to carry on from [default: the newest]
    #[arg(long, env = "STILLPOINT_EPOCH", value_name = "K")]
    epoch: Option<u64>,

    #[command(flatten)]
    options: LaunchOptions,
}

impl Restart {
    pub fn execute(self) -> Outcome {
        let place = Place::here()?;
        place.after_rank_0(self.start(&place))
    }

    fn start(&self, place: &Place) -> Outcome {
        let directory = self.options.tiers.directory(Some(&self.directory))?;
        let directory = absolute(&directory.unwrap_or_else(|| self.directory.clone()))?;
        let decide = || {
            let decision = decide(
                &directory,
                self.epoch,
                place.size,
                self.options.name.clone(),
            )?;
            make_directory(&directory)?;
            Ok(decision)
        };
        start(place, directory.clone(), &self.options, None, decide)
    }
}

/// Rank 0's decision: the epoch, after all that can be checked without mapping anything has been.
pub fn decide(
    directory: &Path,
    wanted: Option<u64>,
    size: u32,
    name: Option<String>,
) -> Result<Decision, Failure> {
    let shown = directory.display();
    let epochs = Epochs::new(directory);
    let committed = epochs
        .committed()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let listed: Vec<String> = committed.iter().map(ToString::to_string).collect();
    let staged = epochs
        .newest_staged()
        .map_err(|error| Failure::failed(error.to_string()))?;
    if let Some(staged) = staged
        && wanted.is_none_or(|wanted| wanted == staged)
    {
        return decide_staged(directory, &epochs, staged, size, name);
    }
    let Some(newest) = committed.last().copied() else {
        let text = format!("{shown}: there is no committed epoch here: check the directory");
        return Err(Failure::new(Failure::MISSING, text));
    };
    let epoch = wanted.unwrap_or(newest);
    if !committed.contains(&epoch) {
        let text = format!(
            "{shown}: there is no committed epoch {epoch}, only {}",
            listed.join(", ")
        );
        return Err(Failure::new(Failure::MISSING, text));
    }
    let broken = |error: ImageError| {
        let others = committed.iter().rev().filter(|other| **other != epoch);
        let advice = match others
            .copied()
            .find(|other| readable(&epochs, *other).is_ok())
        {
            Some(other) => format!("epoch {other} can be restarted with --epoch {other}"),
            None => "no other epoch here can be restarted".to_owned(),
        };
        Failure::failed(format!(
            "epoch {epoch} cannot be restarted: {error}; {advice}"
        ))
    };
    let manifest = Manifest::read(&epochs.path(epoch)).map_err(broken)?;
    fits(&manifest, size)?;
    readable(&epochs, epoch).map_err(broken)?;
    let decision = decision(directory, manifest, name);
    // Its blocks may be nearer than the slow tier.
    let staged_once = epochs.path(epoch).join(blocks_name(0)).exists();
    Ok(match staged_once {
        true => gathering(decision, epoch),
        false => decision,
    })
}

/// The ranks gather the epoch's blocks before they carry on from it.
fn gathering(decision: Decision, epoch: u64) -> Decision {
    Decision {
        epoch: None,
        recovers: Some(epoch),
        ..decision
    }
}

/// The newest epoch there is, committed or staged.
pub fn newest(epochs: &Epochs) -> Result<Option<u64>, Failure> {
    let failed = |error: crate::epoch::EpochError| Failure::failed(error.to_string());
    let staged = epochs.newest_staged().map_err(failed)?;
    Ok(staged.or(epochs.committed().map_err(failed)?.last().copied()))
}

/// A staged epoch: whether the fast tiers still hold their part of it the ranks find out together.
fn decide_staged(
    directory: &Path,
    epochs: &Epochs,
    epoch: u64,
    size: u32,
    name: Option<String>,
) -> Result<Decision, Failure> {
    let manifest = Manifest::read(&epochs.staged_path(epoch))
        .map_err(|error| Failure::failed(format!("epoch {epoch} cannot be restarted: {error}")))?;
    fits(&manifest, size)?;
    Ok(gathering(decision(directory, manifest, name), epoch))
}

fn fits(manifest: &Manifest, size: u32) -> Result<(), Failure> {
    let ranks = manifest.ranks.len();
    if ranks == size as usize {
        return Ok(());
    }
    let noun = if ranks == 1 { "rank" } else { "ranks" };
    Err(Failure::failed(format!(
        "epoch {} was written by {ranks} {noun}, this launch has {size}: start it with mpirun -n {ranks}",
        manifest.epoch
    )))
}

fn decision(directory: &Path, manifest: Manifest, name: Option<String>) -> Decision {
    let job = JobFile::read(directory).ok();
    Decision {
        epoch: Some(manifest.epoch),
        job: manifest.job,
        name: name.unwrap_or(manifest.name),
        command: manifest.command,
        working_directory: job.map_or_else(|| directory.to_owned(), |job| job.working_directory),
        recovers: None,
    }
}

/// Reads the manifest and looks into every image; page data is checked as it is loaded.
fn readable(epochs: &Epochs, epoch: u64) -> Result<(), ImageError> {
    let path = epochs.path(epoch);
    let manifest = Manifest::read(&path)?;
    for entry in &manifest.ranks {
        manifest.open_image(&path, entry.rank)?;
    }
    Ok(())
}
