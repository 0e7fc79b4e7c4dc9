//! Checks whether a restart would find a mapped file, and records how it would recognise it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use stillpoint_image::mapped_files::{FileIdentity, MOST_SUMMED, MappedFile, Sum, open, sum};

use super::super::maps;
use super::lasting::Lasting;
use super::{Candidate, Summed};
use crate::arch::PAGE;

/// The way of an image with a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// It refers to it.
    Refers(MappedFile),
    /// It holds the file's bytes. The file has this length.
    Keeps(u64),
}

/// Returns the file that has the candidate's name, or `None` if that is another one.
pub fn look(
    candidate: &Candidate<'_>,
    lasting: Option<&Lasting>,
    sums: &Mutex<BTreeMap<Summed, Sum>>,
    goes_on: &impl Fn() -> bool,
) -> Option<Found> {
    let file = open(candidate.path).ok()?;
    let about = file.metadata().ok()?;
    let identity = FileIdentity::of(&about);
    let mapped_as = (candidate.device, candidate.inode);
    // Some file systems show another device for a mapped file.
    let is_it = (identity.device, identity.inode) == mapped_as
        || shown_as(&file).is_ok_and(|shown| shown == mapped_as);
    let refers = || refers(candidate, &file, identity, lasting?, sums, goes_on);
    is_it.then(|| refers().map_or(Found::Keeps(identity.bytes), Found::Refers))
}

/// Returns the file that a restart is to find, or `None` if the image had better hold the file's bytes. This is so if it will not last, if
/// it changes during the check, or if the checkpoint has been given up.
fn refers(
    candidate: &Candidate<'_>,
    file: &File,
    identity: FileIdentity,
    lasting: &Lasting,
    sums: &Mutex<BTreeMap<Summed, Sum>>,
    goes_on: &impl Fn() -> bool,
) -> Option<MappedFile> {
    if !lasting.is(candidate, file, &identity) {
        return None;
    }
    let mut found = MappedFile {
        path: candidate.path.to_owned(),
        identity,
        mapped: candidate.mapped(identity.bytes),
        sum: None,
    };
    if found.mapped_bytes() <= MOST_SUMMED {
        found.sum = Some(known_or_taken(file, &found, sums, goes_on)?);
    }
    let after = FileIdentity::of(&file.metadata().ok()?);
    (after == identity).then_some(found)
}

fn known_or_taken(
    file: &File,
    found: &MappedFile,
    sums: &Mutex<BTreeMap<Summed, Sum>>,
    goes_on: &impl Fn() -> bool,
) -> Option<Sum> {
    let summed = (found.identity, found.mapped.clone());
    let known = || sums.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sum) = known().get(&summed) {
        return Some(*sum);
    }
    let sum = sum(file, &found.mapped, goes_on).ok()??;
    known().insert(summed, sum);
    Some(sum)
}

/// Returns device and inode of a file as `/proc/self/maps` shows them.
fn shown_as(file: &File) -> io::Result<(u64, u64)> {
    // SAFETY: the kernel chooses a free address for the page, and nothing touches it.
    let place = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE,
            libc::PROT_NONE,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let all = maps::without_details();
    // SAFETY: this unmaps exactly the page that was mapped above, which nothing else uses.
    unsafe { libc::munmap(place, PAGE) };
    let holds = |one: &&maps::Mapping| (one.start..one.end).contains(&(place as usize));
    let all = all?;
    let shown = all.iter().find(holds).map(|one| (one.device, one.inode));
    shown.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::capture::maps::Mapping;

    fn candidate<'a>(path: &'a str, mapping: &'a Mapping) -> Candidate<'a> {
        Candidate {
            path,
            device: mapping.device,
            inode: mapping.inode,
            mappings: vec![mapping],
        }
    }

    #[test]
    fn a_file_is_known_by_its_name_and_read_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [1; 5000]).unwrap();
        let about = std::fs::metadata(&path).unwrap();
        let mapping = Mapping {
            start: 0x10000,
            end: 0x12000,
            device: about.dev(),
            inode: about.ino(),
            ..Mapping::default()
        };
        let path = path.to_str().unwrap();
        let (sums, yes) = (Mutex::default(), || true);
        let lasting = Some(&Lasting::default());
        let found = look(&candidate(path, &mapping), lasting, &sums, &yes);
        let Some(Found::Refers(found)) = found else {
            panic!("{found:?}");
        };
        assert_eq!(
            (found.identity.bytes, &*found.mapped),
            (5000, &[(0, 5000)][..])
        );
        assert!(found.sum.is_some() && found.open().is_ok());
        // Once more without reading the file. For another part there is no sum yet.
        let no = || false;
        assert_eq!(
            look(&candidate(path, &mapping), lasting, &sums, &no),
            Some(Found::Refers(found))
        );
        let other = Mapping {
            offset: 4096,
            ..mapping.clone()
        };
        assert_eq!(
            look(&candidate(path, &other), lasting, &sums, &no),
            Some(Found::Keeps(5000))
        );
        // Another file has the name.
        let other = Mapping {
            inode: mapping.inode + 1,
            ..mapping.clone()
        };
        assert_eq!(look(&candidate(path, &other), lasting, &sums, &yes), None);
        assert_eq!(
            look(&candidate("/nowhere", &other), lasting, &sums, &yes),
            None
        );
        assert_eq!(
            look(&candidate(path, &mapping), None, &sums, &yes),
            Some(Found::Keeps(5000))
        );
    }

    #[test]
    fn a_file_is_shown_as_what_it_is() {
        let file = tempfile::tempfile().unwrap();
        let (_, inode) = shown_as(&file).unwrap();
        assert_eq!(inode, file.metadata().unwrap().ino());
    }
}
