//! Measurements of a checkpoint directory's own epochs: their sizes and times.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use stillpoint_directory::RequiredOwner;
use stillpoint_image::Manifest;
use stillpoint_multilevel::trace::Trace;

use crate::Failure;
use crate::verify::find;
use stillpoint_coordinator::epoch::Epochs;

fn failed(error: impl ToString) -> Failure {
    Failure::failed(error.to_string())
}

/// The sizes of the newest epoch's images, by rank.
pub fn sizes(directory: &Path) -> Result<Vec<u64>, Failure> {
    let (_, path) = find(directory, None)?;
    let manifest = Manifest::read(&path).map_err(failed)?;
    Ok(manifest.ranks.iter().map(|rank| rank.bytes).collect())
}

/// All committed epochs as a trace, with one snapshot for each.
pub fn trace(directory: &Path) -> Result<Trace, Failure> {
    find(directory, None)?;
    let epochs = Epochs::at(directory, RequiredOwner::Anyones).map_err(failed)?;
    let mut trace: Option<Trace> = None;
    for epoch in epochs.committed().map_err(failed)? {
        let manifest = Manifest::read(&epochs.path(epoch)).map_err(failed)?;
        let names = manifest
            .ranks
            .iter()
            .map(|rank| format!("rank {}", rank.rank));
        let trace = trace.get_or_insert_with(|| Trace::of(names.collect()));
        trace
            .record(manifest.ranks.iter().map(|rank| rank.bytes).collect())
            .map_err(|error| failed(format!("epoch {epoch}: {error}")))?;
    }
    trace.ok_or_else(|| failed("there is no committed epoch"))
}

/// The average time to write an epoch, in seconds, from the beginning of the first image to the manifest.
pub fn checkpoint_seconds(directory: &Path) -> Result<f64, Failure> {
    find(directory, None)?;
    let epochs = Epochs::at(directory, RequiredOwner::Anyones).map_err(failed)?;
    let mut times = Vec::new();
    for epoch in epochs.committed().map_err(failed)? {
        times.push(written_in(&epochs.path(epoch))?.as_secs_f64());
    }
    Ok(times.iter().sum::<f64>() / times.len().max(1) as f64)
}

fn written_in(epoch: &Path) -> Result<Duration, Failure> {
    let manifest = Manifest::read(epoch).map_err(failed)?;
    let time = |name: &str, of: fn(&std::fs::Metadata) -> std::io::Result<SystemTime>| {
        let path = epoch.join(name);
        let error = |error| {
            let path = path.display();
            failed(format!(
                "{path}: the epoch records no times ({error}); give the costs with --checkpoint and --restart"
            ))
        };
        stillpoint_directory::open(&path)
            .and_then(|file| of(&file.metadata()?))
            .map_err(error)
    };
    let end = time(
        stillpoint_image::manifest::NAME,
        std::fs::Metadata::modified,
    )?;
    let mut begin = end;
    for rank in &manifest.ranks {
        begin = begin.min(time(&rank.file, std::fs::Metadata::created)?);
    }
    Ok(end.duration_since(begin).unwrap_or_default())
}

/// The time to read and check the newest epoch, in seconds, as a restart does.
pub fn restart_seconds(directory: &Path) -> Result<f64, Failure> {
    let (_, path) = find(directory, None)?;
    let manifest = Manifest::read(&path).map_err(failed)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    for rank in &manifest.ranks {
        stillpoint_image::verify(&path.join(&rank.file), threads).map_err(failed)?;
    }
    Ok(start.elapsed().as_secs_f64())
}
