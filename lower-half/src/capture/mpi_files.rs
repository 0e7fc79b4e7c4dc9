//! Files that are open through MPI. The upper half lists their names in its inventory; this module checks what lies there.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;
use stillpoint_refusals::{Code, Refusal, refusal};
use stillpoint_wrappers::gate::{self, UpperHooks};

use super::own_descriptor_table::apart;
use super::rank;

/// The payload of an image with these files: JSON, a list of [`MpiFile`]. An image without open files has none.
pub const KIND: Kind = Kind {
    name: "MPI files",
    version: 1,
    always: false,
};

/// Standard-ABI bits of the modes in which a file is written: `MPI_MODE_RDWR`, `MPI_MODE_WRONLY`.
const WRITTEN: u64 = 32 | 256;
/// The bit of `MPI_MODE_WRONLY`.
const WRITTEN_ONLY: u64 = 256;

/// An open file, as the upper half lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OpenMpiFile {
    pub path: String,
    mode: u64,
    /// This process's rank in the file's communicator.
    rank: i64,
}

impl OpenMpiFile {
    fn is_written(&self) -> bool {
        self.mode & WRITTEN != 0
    }

    fn is_read(&self) -> bool {
        self.mode & WRITTEN_ONLY == 0
    }
}

/// A file as a restart must find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiFile {
    pub path: String,
    pub bytes: u64,
    pub read: bool,
    pub written: bool,
    /// Whether this process cuts it back to its length: it does if it is the first member of the communicator, and the file is written.
    pub cut: bool,
}

/// Returns the open files in an upper half's inventory.
fn listed(inventory: &[u8]) -> Vec<OpenMpiFile> {
    let inventory: serde_json::Value = serde_json::from_slice(inventory).unwrap_or_default();
    let files = inventory.get("files").and_then(|files| files.as_array());
    // A file without a path cannot be carried; the upper half has reported that.
    let known = files.into_iter().flatten();
    known
        .filter_map(|file| OpenMpiFile::deserialize(file).ok())
        .collect()
}

/// Returns the open files. The caller is inside, while the driver answers no command.
pub fn open() -> Vec<OpenMpiFile> {
    // SAFETY: an application runs, so the page is mapped; what the upper half registered lives as long as the process.
    let hooks = unsafe {
        let hooks = gate::page().hooks.load(Ordering::Acquire);
        (hooks as *const UpperHooks).as_ref()
    };
    hooks.map_or(vec![], |hooks| listed(&rank::inventory(hooks)))
}

/// Returns why these files cannot be opened again. `upper` are the application's own descriptors; the others are the real MPI's, and one of
/// those leads to the file.
pub fn hinder(files: &[OpenMpiFile], upper: &[RawFd]) -> Vec<Refusal> {
    if files.is_empty() {
        return vec![];
    }
    let there = led_to(upper);
    let each = || {
        let reasons = files.iter().filter_map(|file| one(file, &there).err());
        reasons.collect()
    };
    apart(each).unwrap_or_else(|error| {
        vec![refusal!(
            LostMpiFile,
            "MPI files cannot be looked at: {error}"
        )]
    })
}

fn one(file: &OpenMpiFile, there: &BTreeSet<(u64, u64)>) -> Result<(), Refusal> {
    let path = &file.path;
    let cannot = |error| {
        refusal!(
            LostMpiFile,
            "the MPI file {path} cannot be opened again: {error}"
        )
    };
    let found = fs::metadata(path).map_err(cannot)?;
    if !found.is_file() {
        return Err(refusal!(
            LostMpiFile,
            "the MPI file {path} is no regular file"
        ));
    }
    if !there.contains(&(found.dev(), found.ino())) {
        return Err(refusal!(
            LostMpiFile,
            "the MPI file {path} has another name by now: another file lies there"
        ));
    }
    let mut how = File::options();
    how.read(file.is_read()).write(file.is_written());
    how.open(path).map(drop).map_err(cannot)
}

/// Returns device and inode of the files of all descriptors that are not the application's.
fn led_to(upper: &[RawFd]) -> BTreeSet<(u64, u64)> {
    let numbers = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    numbers
        .filter(|entry| {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            number.is_some_and(|number: RawFd| !upper.contains(&number))
        })
        .filter_map(|entry| fs::metadata(entry.path()).ok())
        .map(|found| (found.dev(), found.ino()))
        .collect()
}

/// Brings written bytes to the disk. The caller must not be inside: a disk may take any time.
///
/// # Errors
/// The first one that fails.
pub fn sync(files: &[OpenMpiFile]) -> Result<(), Refusal> {
    let written: Vec<_> = files.iter().filter(|file| file.is_written()).collect();
    if written.is_empty() {
        return Ok(());
    }
    let sync = |file: &&OpenMpiFile| {
        let synced = File::options().write(true).open(&file.path);
        synced
            .and_then(|opened| opened.sync_all())
            .map_err(|error| {
                let code = Code::of(&error, Code::NotSynced);
                Refusal::new(
                    code,
                    format!("the MPI file {} cannot be synced: {error}", file.path),
                )
            })
    };
    let all = apart(|| written.iter().try_for_each(sync));
    all.map_err(|error: io::Error| refusal!(NotSynced, "MPI files cannot be synced: {error}"))?
}

/// Returns the files that a restart must find.
///
/// # Errors
/// A file is gone by now.
pub fn survey(files: &[OpenMpiFile]) -> Result<Vec<MpiFile>, Refusal> {
    let each = files.iter().map(|file| {
        let found = fs::metadata(&file.path)
            .map_err(|error| refusal!(LostMpiFile, "the MPI file {}: {error}", file.path))?;
        Ok(MpiFile {
            path: file.path.clone(),
            bytes: found.len(),
            read: file.is_read(),
            written: file.is_written(),
            cut: file.is_written() && file.rank == 0,
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use stillpoint_refusals::in_words;

    use super::*;

    fn file(path: &str, mode: u64, rank: i64) -> OpenMpiFile {
        OpenMpiFile {
            path: path.to_owned(),
            mode,
            rank,
        }
    }

    #[test]
    fn the_inventory_lists_what_is_open() {
        let text = br#"{"files": [{"id": 9, "rank": 1, "path": "/a", "mode": 34}, {"id": 10, "rank": 0}]}"#;
        assert_eq!(listed(text), [file("/a", 34, 1)]);
        // An inventory of a release that carried no files.
        assert_eq!(listed(br#"{"files": 2}"#), []);
        assert_eq!(listed(b""), []);
    }

    #[test]
    fn a_file_that_is_gone_or_another_one_hinders() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let opened = File::create(&path).unwrap();
        let files = [file(path.to_str().unwrap(), 32, 0)];
        assert_eq!(hinder(&files, &[]), [] as [Refusal; 0]);
        let others = in_words(&hinder(&files, &[opened.as_raw_fd()]));
        assert!(others.contains("another file lies there"), "{others}");
        fs::remove_file(&path).unwrap();
        let gone = in_words(&hinder(&files, &[]));
        assert!(gone.contains("No such file"), "{gone}");
        let directory = [file(directory.path().to_str().unwrap(), 16, 0)];
        assert!(
            hinder(&directory, &[])[0]
                .details()
                .contains("no regular file")
        );
    }

    #[test]
    fn the_first_member_cuts_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, b"12345").unwrap();
        let path = path.to_str().unwrap();
        let files = [file(path, 256, 0), file(path, 32, 1), file(path, 16, 0)];
        sync(&files).unwrap();
        let found = survey(&files).unwrap();
        assert!(found.iter().all(|file| file.bytes == 5));
        let what = |of: fn(&MpiFile) -> bool| found.iter().map(of).collect::<Vec<_>>();
        assert_eq!(what(|file| file.cut), [true, false, false]);
        assert_eq!(what(|file| file.read), [false, true, true]);
        assert_eq!(what(|file| file.written), [true, true, false]);
    }
}
