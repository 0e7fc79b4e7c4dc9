//! A directory, held by a descriptor.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, openat, stat};
use rustix::process::geteuid;

use crate::entries;
use crate::file::not_allowed;
use crate::numbers::away;

/// The users that may own a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredOwner {
    /// Only this user, and no other may write to it: the program acts upon its contents.
    Ours,
    /// Any user: the program only looks at its contents.
    Anyones,
}

/// A directory that is held: operations go to this directory, whatever becomes of its name.
#[derive(Clone)]
pub struct Directory {
    held: Arc<OwnedFd>,
    path: PathBuf,
    whose: RequiredOwner,
    device: u64,
    inode: u64,
}

impl Directory {
    /// Holds the directory at `path`.
    pub fn open(path: &Path, whose: RequiredOwner) -> io::Result<Directory> {
        if whose == RequiredOwner::Ours {
            own_link(path)?;
        }
        Directory::open_at(CWD, path, path.to_owned(), whose, OFlags::empty())
    }

    /// Makes a directory of ours at `path`, and the missing ones above it, or takes an existing one.
    pub fn make(path: &Path) -> io::Result<Directory> {
        entries::make_all(path)?;
        Directory::open(path, RequiredOwner::Ours)
    }

    /// Holds a directory in this one. Its owner has to meet the same conditions.
    pub fn below(&self, name: &str) -> io::Result<Directory> {
        let path = self.path.join(name);
        Directory::open_at(
            self.as_fd(),
            Path::new(name),
            path,
            self.whose,
            OFlags::NOFOLLOW,
        )
    }

    fn open_at(
        at: BorrowedFd<'_>,
        name: &Path,
        path: PathBuf,
        whose: RequiredOwner,
        flags: OFlags,
    ) -> io::Result<Directory> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = away(openat(at, name, flags, Mode::empty()))?;
        let about = rustix::fs::fstat(&held)?;
        if whose == RequiredOwner::Ours {
            check_ours(&about)?;
        }
        Ok(Directory {
            held: Arc::new(held),
            path,
            whose,
            device: about.st_dev,
            inode: about.st_ino,
        })
    }

    /// The path that it was opened by, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number in its file system: a copy of the directory has another one.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether both are the same directory.
    pub fn is(&self, other: &Directory) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns an error if the path does not lead here any more. Users of the path would find another directory, or none.
    pub fn still_at_its_path(&self) -> io::Result<()> {
        let gone = |what: &str| {
            io::Error::other(format!(
                "this directory was {what} while the job ran: Stillpoint does not touch its path any more; start the \
                 job again in a directory that stays in place"
            ))
        };
        match stat(&self.path) {
            Ok(about) if (about.st_dev, about.st_ino) == (self.device, self.inode) => Ok(()),
            Ok(_) => Err(gone("moved or removed, and then replaced,")),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
                Err(gone("moved or removed"))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn whose(&self) -> RequiredOwner {
        self.whose
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Directory({})", self.path.display())
    }
}

/// Refuses a symbolic link that belongs to another user, other than root: its owner could turn it elsewhere.
fn own_link(path: &Path) -> io::Result<()> {
    let about = rustix::fs::lstat(path)?;
    let link = FileType::from_raw_mode(about.st_mode) == FileType::Symlink;
    match link && about.st_uid != geteuid().as_raw() && about.st_uid != 0 {
        true => Err(not_allowed(format!(
            "it is a symbolic link that belongs to user {}: use a path without that link",
            about.st_uid
        ))),
        false => Ok(()),
    }
}

pub(crate) fn check_ours(about: &Stat) -> io::Result<()> {
    let (owner, user) = (about.st_uid, geteuid().as_raw());
    if owner != user {
        return Err(not_allowed(format!(
            "it belongs to user {owner}, but you are user {user}: use a directory of your own"
        )));
    }
    if about.st_mode & 0o022 != 0 {
        return Err(not_allowed(format!(
            "others may write to it (mode {:04o}): if everything in it is yours, run chmod go-w on it",
            about.st_mode & 0o7777
        )));
    }
    Ok(())
}
