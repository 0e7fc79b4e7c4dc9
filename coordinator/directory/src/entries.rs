//! What is in a directory: its names, and making, renaming and removing.
//!
//! Whoever makes, renames, removes or syncs says at which fault point that is (`stillpoint_faults`), or that it is at
//! none: no step of a checkpoint can be forgotten.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use stillpoint_faults::{Point, strike_at};

use crate::directory::Directory;
use crate::numbers::away;

/// Directories below one another that are gone into to remove them; ours have two levels.
const DEEPEST: u32 = 16;

impl Directory {
    /// The names in it, but for its own and its parent's.
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

    /// Makes a directory in it, for its user alone.
    pub fn make_below(&self, name: &str, at: Option<Point>) -> io::Result<Directory> {
        strike_at(at)?;
        mkdirat(self.as_fd(), name, Mode::RWXU)?;
        self.below(name)
    }

    /// Gives something in it another name; what has that name is replaced, if it is a file or an empty directory.
    pub fn rename(&self, from: &str, to: &str, at: Option<Point>) -> io::Result<()> {
        strike_at(at)?;
        Ok(renameat(self.as_fd(), from, self.as_fd(), to)?)
    }

    /// Removes a file; one that is not there is removed already.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        match unlinkat(self.as_fd(), name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes a directory with all that is in it; links in it go, and what they lead to stays.
    pub fn remove_all(&self, name: &str, at: Option<Point>) -> io::Result<()> {
        strike_at(at)?;
        let name = std::ffi::CString::new(name)?;
        remove(self.as_fd(), &name, DEEPEST)
    }

    /// Removes this directory, if nothing is in it.
    pub fn remove_itself(&self) -> io::Result<()> {
        self.still_at_its_path()?;
        Ok(unlinkat(rustix::fs::CWD, self.path(), AtFlags::REMOVEDIR)?)
    }

    /// Waits until the disk has the names in it.
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
        // No directory.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(unlinkat(at, name, AtFlags::empty())?),
        Err(error) => return Err(error.into()),
    };
    if depth == 0 {
        return Err(io::Error::other(
            "there are directories below directories in it",
        ));
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

/// Makes a directory and what is missing on the way to it, for the user alone; one that is there may be anybody's.
pub fn make_all(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}
