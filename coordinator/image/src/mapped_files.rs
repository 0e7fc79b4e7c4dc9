//! Files that an image refers to. The image holds those pages of a private mapping that the process had of its own; a restart maps the
//! others from the file again. This module records the file, and checks whether the file that is there now has the same contents.
//!
//! The list is a payload of the image, in JSON. An image without it has every byte.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::format::PAGE;
use crate::manifest::hex;
use crate::reader::Reader;
use crate::tables::{Region, RegionKind};

/// The payload's name.
pub const NAME: &str = "mapped files";
/// Its version.
pub const VERSION: u32 = 1;

/// The most bytes of a file that are summed. If more are mapped, a restart accepts only a file with the same modification time.
pub const MOST_SUMMED: u64 = 1 << 30;

/// The bytes that are read at once.
const BLOCK: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFiles {
    /// The time at which the job began, in nanoseconds since 1970.
    pub begun: i64,
    pub files: Vec<MappedFile>,
    /// Regions of the image whose bytes are in files, by address.
    pub regions: Vec<Referred>,
    /// Other private mappings of files, by address: the image has their bytes.
    #[serde(default)]
    pub kept: Vec<Kept>,
}

/// The facts by which a file is known without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    pub changed: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    pub path: String,
    pub identity: FileIdentity,
    /// The parts of the file that are mapped: starts and ends, by offset.
    pub mapped: Vec<(u64, u64)>,
    /// XXH3 of these bytes, if they are not too many.
    pub sum: Option<Sum>,
}

/// A sum over bytes, 32 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum(#[serde(with = "hex")] pub u128);

/// A region whose bytes are in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Referred {
    pub start: u64,
    pub end: u64,
    /// The offset of its start in the file.
    pub offset: u64,
    /// The index of the file.
    pub file: usize,
    /// Pages that are the process's own, and so are in the image, or zero: the number of the file's pages that come first, then of its own
    /// pages, and so on.
    pub own: Vec<u64>,
}

/// A private mapping of a file of which the image has every byte. Pages that the process has not written to are the file's
/// all the same, as long as the file has these bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub start: u64,
    pub end: u64,
    /// The file's length at the checkpoint.
    pub bytes: u64,
    /// As [`Referred::own`].
    pub own: Vec<u64>,
}

impl FileIdentity {
    pub fn of(about: &Metadata) -> FileIdentity {
        let time = |seconds: i64, nanoseconds: i64| {
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(nanoseconds)
        };
        FileIdentity {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.len(),
            modified: time(about.mtime(), about.mtime_nsec()),
            changed: time(about.ctime(), about.ctime_nsec()),
        }
    }
}

impl MappedFiles {
    /// Returns the files that an image refers to; the list is empty if the image has none.
    ///
    /// # Errors
    /// A part that does not fit the image's regions.
    pub fn of(image: &Reader) -> Result<MappedFiles, String> {
        let blob = image.blob(NAME).filter(|blob| blob.version == VERSION);
        let Some(blob) = blob else {
            return Ok(MappedFiles::default());
        };
        let found: MappedFiles = serde_json::from_slice(&blob.bytes)
            .map_err(|error| format!("'{NAME}' in its image: {error}"))?;
        let unsound = found.regions.iter().find(|one| !found.is_sound(one, image));
        if let Some(one) = unsound {
            return Err(format!(
                "'{NAME}' in its image: {:#x}..{:#x} does not fit the image's regions: use another epoch",
                one.start, one.end
            ));
        }
        let unsound = found.kept.iter().find(|one| !one.is_sound(image));
        if let Some(one) = unsound {
            return Err(format!(
                "'{NAME}' in its image: {:#x}..{:#x} does not fit the image's regions: use another epoch",
                one.start, one.end
            ));
        }
        // Searches by address rely on this order.
        if !found
            .regions
            .is_sorted_by(|one, next| one.start < next.start)
            || !found.kept.is_sorted_by(|one, next| one.start < next.start)
        {
            return Err(format!(
                "'{NAME}' in its image: regions are not in order: use another epoch"
            ));
        }
        if let Some(file) = found.files.iter().find(|file| !file.is_sound()) {
            return Err(format!(
                "'{NAME}' in its image: the mapping of {} is not possible: use another epoch",
                file.path
            ));
        }
        Ok(found)
    }

    fn is_sound(&self, referred: &Referred, image: &Reader) -> bool {
        let (Some(region), Some(file)) = (
            region_of(image, referred.start, referred.end),
            self.files.get(referred.file),
        ) else {
            return false;
        };
        fits(&referred.own, region)
            && region.file_offset == referred.offset
            && region.name == file.path
    }

    /// Opens every file that is still as it was. For others it returns the first reason, with the number of further ones.
    ///
    /// # Errors
    /// The text is for people.
    pub fn find(
        &self,
        mut found: impl FnMut(usize, File) -> Result<(), String>,
    ) -> Result<(), String> {
        let looked = self.files.iter().enumerate().map(|(number, file)| {
            let opened = file.open()?;
            found(number, opened).map_err(|what| file.refused(&what))
        });
        let mut reasons = looked.filter_map(Result::err);
        match (reasons.next(), reasons.count()) {
            (None, _) => Ok(()),
            (Some(only), 0) => Err(only),
            (Some(first), others) => Err(format!("{first} (and {others} more)")),
        }
    }

    /// Returns the part that belongs to a region.
    pub fn referred(&self, region: &Region) -> Option<&Referred> {
        let index = self.regions.partition_point(|one| one.start < region.start);
        let found = self.regions.get(index);
        found.filter(|one| (one.start, one.end) == (region.start, region.end))
    }

    /// Returns what is known of a region of which the image has every byte.
    pub fn kept(&self, region: &Region) -> Option<&Kept> {
        let index = self.kept.partition_point(|one| one.start < region.start);
        let found = self.kept.get(index);
        found.filter(|one| (one.start, one.end) == (region.start, region.end))
    }

    /// Returns the bytes of the region that the image leaves to the file.
    pub fn bytes_in_file(&self, referred: &Referred) -> u64 {
        let length = self
            .files
            .get(referred.file)
            .map_or(0, |file| file.identity.bytes);
        let left = length.saturating_sub(referred.offset);
        let there = left
            .next_multiple_of(PAGE as u64)
            .min(referred.end - referred.start);
        let own: u64 = referred.own().map(|range| range.end - range.start).sum();
        there.saturating_sub(own)
    }
}

impl Referred {
    /// Returns the addresses of the process's own pages.
    pub fn own(&self) -> impl Iterator<Item = Range<u64>> {
        stretches(self.start, &self.own)
    }

    /// Notes the addresses of the process's own pages, in order.
    pub fn set_own(&mut self, stretches: &[Range<usize>]) {
        self.own = numbers(self.start, stretches);
    }
}

impl Kept {
    /// Returns the addresses of the process's own pages.
    pub fn own(&self) -> impl Iterator<Item = Range<u64>> {
        stretches(self.start, &self.own)
    }

    /// Notes the addresses of the process's own pages, in order.
    pub fn set_own(&mut self, stretches: &[Range<usize>]) {
        self.own = numbers(self.start, stretches);
    }

    fn is_sound(&self, image: &Reader) -> bool {
        region_of(image, self.start, self.end).is_some_and(|region| fits(&self.own, region))
    }
}

fn region_of(image: &Reader, start: u64, end: u64) -> Option<&Region> {
    let regions = image.regions();
    let index = regions.partition_point(|region| region.start < start);
    let region = regions.get(index)?;
    ((region.start, region.end) == (start, end)).then_some(region)
}

/// Returns whether a region is a private mapping of a file with as many pages as these.
fn fits(own: &[u64], region: &Region) -> bool {
    let pages = own
        .iter()
        .try_fold(0u64, |sum, pages| sum.checked_add(*pages));
    region.kind == RegionKind::PrivateFile
        && pages.is_some_and(|pages| pages <= region.bytes() / PAGE as u64)
}

/// Returns the stretches that these numbers of pages describe, from an address on.
fn stretches(start: u64, own: &[u64]) -> impl Iterator<Item = Range<u64>> {
    let mut at = start;
    own.chunks(2).filter_map(move |pair| {
        let start = at + pair.first()? * PAGE as u64;
        at = start + pair.get(1)? * PAGE as u64;
        Some(start..at)
    })
}

fn numbers(start: u64, stretches: &[Range<usize>]) -> Vec<u64> {
    let mut at = start;
    let mut own = Vec::with_capacity(2 * stretches.len());
    for stretch in stretches {
        let (start, end) = (stretch.start as u64, stretch.end as u64);
        own.push((start - at) / PAGE as u64);
        own.push((end - start) / PAGE as u64);
        at = end;
    }
    own
}

/// Opens a file, to read it and to map it.
pub fn open(path: &str) -> io::Result<File> {
    // Opening something other than a file may have effects, or never return.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Sums parts of a file. It reads them and never maps them, so that a file that becomes shorter does no harm. Returns `None` if `goes_on`
/// returns false.
pub fn sum(
    file: &File,
    parts: &[(u64, u64)],
    mut goes_on: impl FnMut() -> bool,
) -> io::Result<Option<Sum>> {
    let mut hash = Xxh3::new();
    let mut block = vec![0; BLOCK];
    for &(start, end) in parts {
        let mut at = start;
        while at < end {
            if !goes_on() {
                return Ok(None);
            }
            let part = &mut block[..BLOCK.min((end - at) as usize)];
            file.read_exact_at(part, at)?;
            hash.update(part);
            at += part.len() as u64;
        }
    }
    Ok(Some(Sum(hash.digest128())))
}

impl MappedFile {
    /// Returns whether the mapped parts lie in the file, in order, without overlap.
    fn is_sound(&self) -> bool {
        let mut at = 0;
        let in_order = self.mapped.iter().all(|(start, end)| {
            let follows = at <= *start && start < end;
            at = *end;
            follows
        });
        in_order && at <= self.identity.bytes && self.identity.bytes <= i64::MAX as u64
    }

    /// Returns how many bytes of the file are mapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped
            .iter()
            .map(|(start, end)| end.saturating_sub(*start))
            .sum()
    }

    /// Returns whether both accept the same files.
    pub fn wants_the_same(&self, other: &MappedFile) -> bool {
        let time = |file: &MappedFile| file.sum.is_none().then_some(file.identity.modified);
        self.path == other.path
            && self.identity.bytes == other.identity.bytes
            && (self.sum, time(self)) == (other.sum, time(other))
            && self.mapped == other.mapped
    }

    /// Opens the file if it is there and has the right contents; otherwise says why not, and what to do.
    ///
    /// # Errors
    /// The text is for people.
    pub fn open(&self) -> Result<File, String> {
        self.is_there().map_err(|what| self.refused(&what))
    }

    /// Returns the text of a refusal: the file, what is wrong, what to do.
    pub fn refused(&self, what: &str) -> String {
        format!(
            "the program has mapped {}, {what}: put the file back as it was; before the next checkpoint, start the \
             job with --mapped-files keep",
            self.path
        )
    }

    fn is_there(&self) -> Result<File, String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                "but the file is missing here".to_owned()
            }
            _ => format!("but this process cannot read the file ({error})"),
        };
        let file = open(&self.path).map_err(failed)?;
        let here = FileIdentity::of(&file.metadata().map_err(failed)?);
        let then = &self.identity;
        if here.bytes != then.bytes {
            return Err(format!(
                "but the file has {} bytes here instead of {}",
                here.bytes, then.bytes
            ));
        }
        if here == *then {
            return Ok(file);
        }
        match self.sum {
            Some(then) => match sum(&file, &self.mapped, || true).map_err(failed)? {
                Some(here) if here == then => Ok(file),
                _ => Err("but the file has other contents here".to_owned()),
            },
            None if here.modified == then.modified => Ok(file),
            None => Err(format!(
                "but the file was modified at another time (here at {} s since 1970, then at {} s) and is too large \
                 to compare its contents",
                here.modified / 1_000_000_000,
                then.modified / 1_000_000_000
            )),
        }
    }
}

#[cfg(test)]
mod tests;
