//! The manifest of an epoch: its images, and what a restart has to match.
//!
//! ```text
//! stillpoint-manifest 1 4f0c…(16 hex digits: XXH3 of what follows the line) 1234 (its bytes)
//! { ... JSON ... }
//! ```
//!
//! The coordinator writes it when every rank's image is on disk; without it, a directory is not an epoch.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_faults::Replacement;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_incremental::viability::Record;

use crate::error::ImageError;
use crate::format::checksum;
use crate::reader::Reader;

/// The manifest's name inside an epoch's directory.
pub const NAME: &str = "manifest";
/// First word of the first line.
const MAGIC: &str = "stillpoint-manifest";
/// The version of the form; it rises with every change that an older reader would misunderstand.
const VERSION: u32 = 1;
/// The most bytes of a manifest: enough for half a million ranks, at about 2 KB a rank with the model's record.
const MAX_BYTES: u64 = 1 << 30;

/// The contents of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The job's id.
    pub job: String,
    /// The job's name.
    pub name: String,
    pub epoch: Epoch,
    /// Seconds since 1970 at which the epoch was committed.
    pub committed: u64,
    /// The application and its arguments.
    pub command: Vec<String>,
    /// The MPI ABI of the upper half: `openmpi`.
    pub mpi: String,
    /// The MPI ABI of the library that was below it. A restart may have another.
    #[serde(default = "only_library")]
    pub library: String,
    /// The contract between the halves that every image names.
    pub gate_version: u32,
    /// The version of Stillpoint that wrote the epoch.
    pub stillpoint: String,
    /// The compression, in the form of `--compress`.
    pub compression: String,
    /// Earlier epochs whose images hold chunks of this one's, ascending: this epoch cannot be read without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Epoch>,
    /// The images, in order of rank, none missing.
    pub ranks: Vec<RankImage>,
}

/// Returns the library of every epoch that does not name one.
fn only_library() -> String {
    "openmpi".to_owned()
}

/// One rank's image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankImage {
    pub rank: Rank,
    /// File name inside the epoch's directory.
    pub file: String,
    pub bytes: u64,
    /// The image's digest, 32 hex digits.
    #[serde(with = "hex")]
    pub digest: u128,
    pub hostname: String,
    /// The prediction of the model of incremental epochs for this image, and the outcome. Manifests of earlier releases lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increment: Option<Record>,
}

pub(crate) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

impl Manifest {
    /// Writes the manifest into the directory at a path; see [`Manifest::write_in`].
    pub fn write(&self, directory: &Path) -> Result<(), ImageError> {
        let held = Directory::open(directory, RequiredOwner::Anyones)
            .map_err(ImageError::io(directory, "open the directory"))?;
        self.write_in(&held)
    }

    /// Writes the manifest into `directory` and waits until the disk has both the manifest and its name.
    pub fn write_in(&self, directory: &Directory) -> Result<(), ImageError> {
        let path = directory.path().join(NAME);
        let mut body = serde_json::to_vec_pretty(self).map_err(|error| ImageError::Unwritable {
            path: path.clone(),
            problem: error.to_string(),
        })?;
        body.push(b'\n');
        let mut text = format!(
            "{MAGIC} {VERSION} {:016x} {}\n",
            checksum(&body),
            body.len()
        )
        .into_bytes();
        text.append(&mut body);
        directory
            .replace(NAME, &text, Some(Replacement::MANIFEST))
            .map_err(ImageError::io(&path, "write the manifest"))
    }

    /// Reads and checks the manifest in `directory`.
    pub fn read(directory: &Path) -> Result<Manifest, ImageError> {
        let path = directory.join(NAME);
        let text = stillpoint_directory::read(&path, MAX_BYTES)
            .map_err(ImageError::io(&path, "read the manifest"))?;
        parse(&path, &text)
    }

    /// Reads and checks the manifest in a directory that is already open.
    pub fn read_in(directory: &Directory) -> Result<Manifest, ImageError> {
        let path = directory.path().join(NAME);
        let text = directory
            .read(NAME, MAX_BYTES)
            .map_err(ImageError::io(&path, "read the manifest"))?;
        parse(&path, &text)
    }

    /// Opens the image of `rank` in `directory` and checks it (all but its page data) against the
    /// manifest.
    pub fn open_image(&self, directory: &Path, rank: Rank) -> Result<Reader, ImageError> {
        self.open_with(directory, rank, Reader::open)
    }

    /// Does the same, but reads what the fast tiers of `host` and the file `fetched` hold of the image from there.
    pub fn open_nearest_image(
        &self,
        directory: &Path,
        rank: Rank,
        host: &str,
        fetched: Option<&Path>,
    ) -> Result<Reader, ImageError> {
        self.open_with(directory, rank, |path| {
            Reader::open_nearest(path, host, fetched)
        })
    }

    fn open_with(
        &self,
        directory: &Path,
        rank: Rank,
        open: impl Fn(&Path) -> Result<Reader, ImageError>,
    ) -> Result<Reader, ImageError> {
        let path = directory.join(NAME);
        let bad = |problem: String| ImageError::malformed(&path, 0, "ranks", problem);
        let entry = self.ranks.get(rank.index());
        let entry = entry.ok_or_else(|| {
            bad(format!(
                "there is no rank {rank}, the job has {} ranks",
                self.ranks.len()
            ))
        })?;
        let reader = open(&directory.join(&entry.file))?;
        self.check_image(entry, &reader)?;
        Ok(reader)
    }

    /// Checks that an image is the one that the manifest means.
    pub fn check_image(&self, entry: &RankImage, reader: &Reader) -> Result<(), ImageError> {
        let path = reader.path().to_owned();
        if reader.digest() != entry.digest {
            return Err(ImageError::Digest {
                path,
                found: reader.digest(),
                expected: entry.digest,
            });
        }
        let identity = reader.identity();
        let size = self.ranks.len() as u32;
        if (identity.rank, identity.size, identity.epoch) != (entry.rank, size, self.epoch)
            || identity.job != self.job
        {
            let problem = format!(
                "rank {} of {}, epoch {}, job {}; the manifest says rank {} of {size}, epoch {}, job {}",
                identity.rank,
                identity.size,
                identity.epoch,
                identity.job,
                entry.rank,
                self.epoch,
                self.job
            );
            return Err(ImageError::malformed(&path, 0, "identity", problem));
        }
        for (rank, path, found) in reader.siblings() {
            let known = self.ranks.get(rank.index()).map(|known| known.digest);
            match known {
                Some(expected) if expected == found => {}
                Some(expected) => {
                    return Err(ImageError::Digest {
                        path: path.to_owned(),
                        found,
                        expected,
                    });
                }
                None => {
                    let problem = format!("it needs rank {rank}, but the job has {size} ranks");
                    let path = reader.path();
                    return Err(ImageError::malformed(path, 0, "siblings", problem));
                }
            }
        }
        // Cleaning decides by the manifest which epochs to keep.
        let mut origins = reader.origins().iter();
        if let Some(origin) = origins.find(|origin| !self.needs.contains(&origin.epoch)) {
            let problem = format!(
                "it needs epoch {}, but the manifest does not list it",
                origin.epoch
            );
            return Err(ImageError::malformed(&path, 0, "origins", problem));
        }
        Ok(())
    }
}

fn parse(path: &Path, text: &[u8]) -> Result<Manifest, ImageError> {
    let bad = |offset: u64, field: &str, problem: String| {
        ImageError::malformed(path, offset, field, problem)
    };
    let line_end = text.iter().take(200).position(|byte| *byte == b'\n');
    let line = line_end
        .and_then(|end| std::str::from_utf8(&text[..end]).ok())
        .unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let (Some(line_end), [MAGIC, version, sum, bytes]) = (line_end, words.as_slice()) else {
        return Err(ImageError::NotOurs {
            path: path.to_owned(),
            what: "manifest",
        });
    };
    let version = version
        .parse()
        .map_err(|_| bad(0, "version", format!("'{version}'")))?;
    if version != VERSION {
        return Err(ImageError::Version {
            path: path.to_owned(),
            found: version,
            oldest: VERSION,
            expected: VERSION,
        });
    }
    let sum = u64::from_str_radix(sum, 16).map_err(|_| bad(0, "checksum", format!("'{sum}'")))?;
    let bytes: u64 = bytes
        .parse()
        .map_err(|_| bad(0, "length", format!("'{bytes}'")))?;
    let body = &text[line_end + 1..];
    let offset = line_end as u64 + 1;
    if (body.len() as u64) < bytes {
        let (found, needed) = (text.len() as u64, offset.saturating_add(bytes));
        return Err(ImageError::Truncated {
            path: path.to_owned(),
            found,
            needed,
            field: "manifest",
        });
    }
    if body.len() as u64 > bytes {
        return Err(bad(
            offset,
            "length",
            format!("{} bytes instead of {bytes}", body.len()),
        ));
    }
    let found = checksum(body);
    if found != sum {
        let field = "manifest".into();
        return Err(ImageError::Checksum {
            path: path.to_owned(),
            offset,
            field,
            found,
            expected: sum,
        });
    }
    let manifest: Manifest =
        serde_json::from_slice(body).map_err(|error| bad(offset, "manifest", error.to_string()))?;
    sound(&manifest).map_err(|(field, problem)| bad(offset, field, problem))?;
    Ok(manifest)
}

/// Checks the values of a manifest; an error names the field, and what is wrong with it.
fn sound(manifest: &Manifest) -> Result<(), (&'static str, String)> {
    let in_order = manifest.needs.is_sorted_by(|one, next| one < next);
    let last = manifest.needs.last();
    if !in_order || last.is_some_and(|last| *last >= manifest.epoch) {
        let needs: Vec<String> = manifest.needs.iter().map(Epoch::to_string).collect();
        let problem = format!(
            "{} are not earlier epochs in ascending order",
            needs.join(", ")
        );
        return Err(("needs", problem));
    }
    for (index, rank) in manifest.ranks.iter().enumerate() {
        if rank.rank.index() != index {
            let problem = format!("rank {} is at the position of rank {index}", rank.rank);
            return Err(("ranks", problem));
        }
        if rank.file.is_empty() || rank.file.contains('/') || rank.file == ".." {
            let problem = format!("'{}' of rank {index} is not a file name", rank.file);
            return Err(("file", problem));
        }
    }
    Ok(())
}
