//! Breaks a committed epoch on purpose, each time in only one way: all other checks of a reader still succeed.

use std::fs;
use std::path::{Path, PathBuf};

use stillpoint_fuzzed::parts::Parts;
use stillpoint_ids::Rank;
use stillpoint_image::format::{SectionKind, VERSION};
use stillpoint_image::{Environment, Manifest, Reader, image_name};

use crate::Failed;

/// A changed file of an epoch. It is restored when this is dropped.
#[derive(Debug)]
pub struct Broken {
    path: PathBuf,
    was: Vec<u8>,
}

impl Drop for Broken {
    fn drop(&mut self) {
        // If this fails, a later test reports the missing file.
        let _ = fs::write(&self.path, &self.was);
    }
}

/// Replaces the bytes of a file by the result of `change`; Removes the file if that is `None`.
pub fn change(
    path: &Path,
    change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, Failed>,
) -> Result<Broken, Failed> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let was = fs::read(path).map_err(failed)?;
    let changed = change(&was)?;
    let broken = Broken {
        path: path.to_owned(),
        was,
    };
    match changed {
        Some(bytes) => fs::write(path, bytes).map_err(failed)?,
        None => fs::remove_file(path).map_err(failed)?,
    }
    Ok(broken)
}

/// Removes the file.
pub fn missing(path: &Path) -> Result<Broken, Failed> {
    change(path, |_| Ok(None))
}

/// Truncates the file to `keep` of its bytes.
pub fn truncated(path: &Path, keep: u64) -> Result<Broken, Failed> {
    change(path, |bytes| {
        Ok(Some(bytes[..bytes.len().min(keep as usize)].to_vec()))
    })
}

/// Flips one bit.
pub fn flipped(path: &Path, bit: u64) -> Result<Broken, Failed> {
    change(path, |bytes| {
        let mut bytes = bytes.to_vec();
        let byte = (bit / 8) as usize % bytes.len().max(1);
        bytes[byte] ^= 1 << (bit % 8);
        Ok(Some(bytes))
    })
}

fn parts(bytes: &[u8]) -> Result<Parts, Failed> {
    Parts::of_file(bytes).ok_or_else(|| "a part beyond the end".into())
}

/// Changes the image's format to that of a later release; otherwise it is whole.
pub fn later_version(path: &Path) -> Result<Broken, Failed> {
    change(path, |bytes| {
        let mut parts = parts(bytes)?;
        parts.header.version = VERSION + 1;
        Ok(Some(parts.file()))
    })
}

/// Makes an epoch seem to come from a processor that has `feature`; image and manifest are whole.
pub fn needs_feature(epoch: &Path, rank: Rank, feature: &str) -> Result<(Broken, Broken), Failed> {
    let path = epoch.join(image_name(rank));
    let image = change(&path, |bytes| {
        let mut parts = parts(bytes)?;
        let section = parts
            .section(SectionKind::Environment)
            .ok_or("no environment")?;
        let mut environment: Environment =
            serde_json::from_slice(section).map_err(|error| error.to_string())?;
        environment.cpu.features.push(feature.to_owned());
        environment.cpu.features.sort();
        *section = serde_json::to_vec(&environment).map_err(|error| error.to_string())?;
        Ok(Some(parts.file()))
    })?;
    let reader = Reader::open(&path).map_err(|error| format!("badly rewritten: {error}"))?;
    let manifest = change(&epoch.join(stillpoint_image::manifest::NAME), |_| {
        let mut manifest = Manifest::read(epoch).map_err(|error| error.to_string())?;
        let entry = manifest.ranks.get_mut(rank.index()).ok_or("no such rank")?;
        entry.digest = reader.digest();
        entry.bytes = fs::metadata(&path).map_or(0, |about| about.len());
        manifest.write(epoch).map_err(|error| error.to_string())?;
        let text = fs::read(epoch.join(stillpoint_image::manifest::NAME));
        text.map(Some).map_err(|error| error.to_string())
    })?;
    Ok((image, manifest))
}
