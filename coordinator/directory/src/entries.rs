//! Entries of a directory: listing, making, renaming and removing.
//!
//! Callers that make, rename, remove or sync an entry name the fault point of that step (`stillpoint_faults`), or say that it has none. So no step of a
//! checkpoint can be forgotten.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use stillpoint_faults::{Point, strike_at};

use crate::directory::Directory;
use crate::numbers::away;

/// Levels of directories that a removal goes into; ours have two.
const DEEPEST: u32 = 16;

impl Directory {
    /// The names in it, without `.` and `..`.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = vec![];
        for entry in Dir::read_from(self.as_fd())? {
            let entry = entry?;
            let name = entry.file_name();
            if !dots(name) {
                names.push(OsString::from_vec(name.to_bytes().to_vec()));
            }
        }
        Ok(names)
    }

    /// Makes a directory in it that only its user can open, or opens the one that is there. That one must be of the same user; where the name is unique, the
    /// request was sent twice because a file server's answer was lost.
    pub fn make_below(&self, name: &str, at: Option<Point>) -> io::Result<Directory> {
        strike_at(at)?;
        match mkdirat(self.as_fd(), name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.below(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames an entry whose name nobody else removes. A file or an empty directory that has the new name is replaced.
    ///
    /// A file server may rename it and lose its answer. Its client then reports an error: of its patience, or of the second request, which finds nothing any
    /// more. So the names decide: if the old one is gone and the new one leads to a file that it did not lead to before, it was renamed.
    pub fn rename(&self, from: &str, to: &str, at: Option<Point>) -> io::Result<()> {
        strike_at(at)?;
        let there = |name: &str| {
            let found = statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
            found.map(|found| (found.st_dev, found.st_ino))
        };
        let before = there(to);
        let Err(error) = renameat(self.as_fd(), from, self.as_fd(), to) else {
            return Ok(());
        };
        match (there(from), there(to)) {
            (Err(Errno::NOENT), Ok(now)) if before != Ok(now) => Ok(()),
            _ => Err(error.into()),
        }
    }

    /// Removes a file; a missing one is no error.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        match unlinkat(self.as_fd(), name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes a directory with all its contents. Links in it are removed, their targets stay.
    pub fn remove_all(&self, name: &str, at: Option<Point>) -> io::Result<()> {
        strike_at(at)?;
        let name = std::ffi::CString::new(name)?;
        remove(self.as_fd(), &name, DEEPEST)
    }

    /// Removes this directory, if it is empty.
    pub fn remove_itself(&self) -> io::Result<()> {
        self.still_at_its_path()?;
        Ok(unlinkat(rustix::fs::CWD, self.path(), AtFlags::REMOVEDIR)?)
    }

    /// Waits until the names in it are on the disk.
    pub fn sync(&self, at: Option<Point>) -> io::Result<()> {
        strike_at(at)?;
        Ok(rustix::fs::fsync(self.as_fd())?)
    }
}

fn dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn remove(at: impl AsFd, name: &CStr, depth: u32) -> io::Result<()> {
    let at = at.as_fd();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inside = match away(openat(at, name, flags, Mode::empty())) {
        Ok(inside) => inside,
        Err(Errno::NOENT) => return Ok(()),
        // It is not a directory.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(unlinkat(at, name, AtFlags::empty())?),
        Err(error) => return Err(error.into()),
    };
    if depth == 0 {
        return Err(io::Error::other("its directories are nested too deeply"));
    }
    for entry in Dir::read_from(&inside)? {
        let entry = entry?;
        if dots(entry.file_name()) {
            continue;
        }
        match entry.file_type() {
            FileType::Directory | FileType::Unknown => {
                remove(&inside, entry.file_name(), depth - 1)?;
            }
            _ => match unlinkat(&inside, entry.file_name(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
    match unlinkat(at, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a directory and the missing ones above it, for the user alone; an existing one may belong to anybody.
pub fn make_all(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}
