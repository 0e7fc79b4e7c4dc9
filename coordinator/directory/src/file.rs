//! Files: regular ones only, whatever other users have put there under their names.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fchmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use stillpoint_faults::{Replacement, strike_at};

use crate::directory::{Directory, RequiredOwner, check_ours};
use crate::numbers::away;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// No link is followed, no terminal becomes ours, and no open waits for the other end of a FIFO.
const CAREFUL: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

pub(crate) fn not_allowed(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

/// Opens a file to read it.
pub fn open(path: &Path) -> io::Result<File> {
    open_at(CWD, path, OFlags::RDONLY, RequiredOwner::Anyones)
}

/// Opens an existing file for writing only. An NFS client that may read the file reads a whole page to write a part of it, and writes the whole page later:
/// it would put its old bytes over those that another host has written beside its own.
pub fn overwrite(path: &Path) -> io::Result<File> {
    open_at(CWD, path, OFlags::WRONLY, RequiredOwner::Anyones)
}

/// Opens an existing file for reading and writing. No other host may write to it meanwhile.
pub fn rewrite(path: &Path) -> io::Result<File> {
    open_at(CWD, path, OFlags::RDWR, RequiredOwner::Anyones)
}

/// Reads a whole file; a file longer than `limit` is an error.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_whole(open(path)?, limit)
}

/// Makes a file for its user alone, and replaces an existing one.
pub fn create(path: &Path) -> io::Result<File> {
    create_at(CWD, path)
}

/// Opens a file for writing, and makes it if it is missing. Existing contents stay.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    open_at(
        CWD,
        path,
        OFlags::WRONLY | OFlags::CREATE,
        RequiredOwner::Anyones,
    )
}

/// Makes a file without a name in the directory at `path`. It disappears with its process, however that ends.
pub fn scratch(directory: &Path) -> io::Result<File> {
    Directory::open(directory, RequiredOwner::Anyones)?.scratch()
}

/// The length of a file.
pub fn stored_bytes(path: &Path) -> io::Result<u64> {
    Ok(open(path)?.metadata()?.len())
}

impl Directory {
    /// Opens a file in it for reading.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        open_at(self.as_fd(), Path::new(name), OFlags::RDONLY, self.whose())
    }

    /// Reads a whole file in it; a file longer than `limit` is an error.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        read_whole(self.open_file(name)?, limit)
    }

    /// Opens a file in it to append to it, and makes it if it is missing.
    pub fn append(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        open_at(self.as_fd(), Path::new(name), flags, self.whose())
    }

    /// Makes a file in it for its user alone, and replaces an existing one.
    pub fn create(&self, name: &str) -> io::Result<File> {
        create_at(self.as_fd(), Path::new(name))
    }

    /// Opens a file in it for writing, and makes it if it is missing. Existing contents stay.
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE;
        open_at(self.as_fd(), Path::new(name), flags, self.whose())
    }

    /// Replaces a file in it in one step. A reader sees the old one or the new one, even if another process replaces it at the same time, on this host or
    /// another. If the replacement is durable, the file is on the disk when this returns.
    /// Each step is a fault point of `steps`. Without `steps`, no checkpoint and no restart needs the file, and it is not durable.
    pub fn replace(&self, name: &str, bytes: &[u8], steps: Option<Replacement>) -> io::Result<()> {
        self.remove_drafts(name)?;
        let draft = draft_name(name);
        let replaced = self
            .write_draft(&draft, bytes, steps)
            .and_then(|()| self.rename(&draft, name, steps.map(|steps| steps.rename)));
        if replaced.is_err() {
            // The error itself matters more.
            let _ = self.remove_file(&draft);
        }
        replaced?;
        match steps.and_then(|steps| steps.durable) {
            Some(durable) => self.sync(Some(durable.directory)),
            None => Ok(()),
        }
    }

    fn write_draft(&self, draft: &str, bytes: &[u8], steps: Option<Replacement>) -> io::Result<()> {
        let mut file = self.create(draft)?;
        strike_at(steps.map(|steps| steps.write))?;
        file.write_all(bytes)?;
        match steps.and_then(|steps| steps.durable) {
            Some(durable) => {
                strike_at(Some(durable.sync))?;
                file.sync_all()
            }
            None => Ok(()),
        }
    }

    /// Whether a draft of the file is there: another process is about to replace the file, or was killed before it could.
    pub fn has_draft(&self, name: &str) -> bool {
        let names = self.names().unwrap_or_default();
        let mut names = names.iter().filter_map(|found| found.to_str());
        names.any(|found| is_draft_of(found, name))
    }

    /// Removes old drafts of processes that were killed before they could rename them.
    fn remove_drafts(&self, name: &str) -> io::Result<()> {
        for found in self.names()? {
            let Some(found) = found.to_str().filter(|found| is_draft_of(found, name)) else {
                continue;
            };
            let about = statat(self.as_fd(), found, AtFlags::SYMLINK_NOFOLLOW);
            let made = about.map(|about| u64::try_from(about.st_mtime).unwrap_or(0));
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            if made.is_ok_and(|made| now.as_secs().saturating_sub(made) > DRAFT_SECONDS) {
                self.remove_file(found)?;
            }
        }
        Ok(())
    }

    /// Makes a file in it without a name.
    pub fn scratch(&self) -> io::Result<File> {
        let unnamed = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        match away(openat(self.as_fd(), ".", unnamed, PRIVATE)) {
            Ok(file) => return Ok(file.into()),
            // Few file systems have such files, and hardly any network file system.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        let name = format!(".scratch-{}", std::process::id());
        let file = self.create(&name)?;
        unlinkat(self.as_fd(), &name, AtFlags::empty())?;
        Ok(file)
    }
}

/// The age in seconds after which a draft is abandoned: writing one never takes so long.
const DRAFT_SECONDS: u64 = 3600;

/// A unique name, on this host and on others.
fn draft_name(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    format!(".{name}.{:x}-{process:x}-{count:x}.new", now.as_nanos())
}

fn is_draft_of(found: &str, name: &str) -> bool {
    let rest = found
        .strip_prefix('.')
        .and_then(|rest| rest.strip_prefix(name));
    rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".new"))
}

fn open_at(
    at: BorrowedFd<'_>,
    name: &Path,
    flags: OFlags,
    whose: RequiredOwner,
) -> io::Result<File> {
    let opened = match away(openat(at, name, flags | CAREFUL, PRIVATE)) {
        // The kernel's answer if the name is a link.
        Err(Errno::LOOP) => {
            return Err(not_allowed(
                "it is a symbolic link: put the file itself in its place".into(),
            ));
        }
        // The name is a FIFO without a reader, or a socket.
        Err(Errno::NXIO) => return Err(irregular()),
        opened => opened?,
    };
    let about = fstat(&opened)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(irregular());
    }
    if whose == RequiredOwner::Ours {
        check_ours(&about)?;
    }
    Ok(opened.into())
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

fn create_at(at: BorrowedFd<'_>, name: &Path) -> io::Result<File> {
    match unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = away(openat(at, name, flags | CAREFUL, PRIVATE))?;
    // The mode is set apart from the umask, since its user has to read the file again.
    fchmod(&file, PRIVATE)?;
    Ok(file.into())
}

fn read_whole(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let too_long = || {
        let problem = format!("it is longer than {limit} bytes");
        io::Error::new(io::ErrorKind::InvalidData, problem)
    };
    if file.metadata()?.len() > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(too_long()),
        false => Ok(bytes),
    }
}
