//! The table of chunks that the ranks of a node share (`--dedup`): memory that one of them keeps, and that the others find through `/proc`.
//!
//! The keeper makes it at the check, when its application stands still, and keeps a descriptor of it until the application runs
//! on: no rank runs on before all have mapped it. It has no name in any file system, so nothing is left of it when its ranks have
//! ended, however they end. A rank may be unable to find it: it may be in another PID namespace, or may not look into the
//! keeper's process. Then it goes without, and finds only equal memory of its own.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{Advice, MmapRaw};
use stillpoint_faults::{Point, strike};
use stillpoint_image::Index;
use stillpoint_protocol::agent::Dedup;

use crate::ground::free;

/// One attempt's table, as this rank has it.
#[derive(Default)]
pub struct SharedChunkTable(Mutex<Option<File>>);

impl SharedChunkTable {
    fn file(&self) -> MutexGuard<'_, Option<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the table, if this process is its keeper. The epoch is written even if that fails.
    pub fn keep(&self, dedup: Dedup, attempt: u64) {
        let this = std::process::id();
        if matches!(dedup, Dedup::Node { keeper } if keeper == this) {
            *self.file() = make(&name(this, attempt)).ok();
        }
    }

    /// Closes the table: no rank looks for it any more.
    pub fn close(&self) {
        *self.file() = None;
    }

    /// Returns the table of chunks that the ranks of the node have written, or `None` if there is no way to it.
    pub fn open(&self, dedup: Dedup, attempt: u64) -> Option<Index> {
        let Dedup::Node { keeper } = dedup else {
            return None;
        };
        strike(Point::ChunkTable).ok()?;
        let mapped = match &*self.file() {
            Some(file) => Words::map(file),
            None => find(keeper, &name(keeper, attempt)).and_then(|file| Words::map(&file)),
        };
        mapped.ok().map(Index::in_words)
    }
}

/// Returns the name of the memory, made of its keeper and the attempt, so that no rank takes another one for it.
fn name(keeper: u32, attempt: u64) -> String {
    format!("stillpoint-chunks-{keeper}-{attempt}")
}

fn make(name: &str) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name ends in NUL and lives until the call returns, which makes a descriptor.
    let number = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and nothing else owns it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
    let words = Index::words_for(free::of_the_node());
    let last = ((words - 1) * size_of::<AtomicU64>()) as u64;
    file.set_len(last)?;
    file.write_all_at(&Index::new_seed().to_ne_bytes(), last)?;
    // No process can take away memory that others have mapped.
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: the call takes numbers and touches no memory.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens the memory of that name that another process has open.
fn find(keeper: u32, name: &str) -> io::Result<File> {
    let wanted = format!("/memfd:{name} (deleted)");
    for entry in fs::read_dir(format!("/proc/{keeper}/fd"))? {
        let path = entry?.path();
        if fs::read_link(&path).is_ok_and(|target| target.as_os_str() == wanted.as_str()) {
            return fs::OpenOptions::new().read(true).write(true).open(path);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The memory, mapped.
struct Words(MmapRaw);

impl Words {
    fn map(file: &File) -> io::Result<Words> {
        let map = MmapRaw::map_raw(file)?;
        // Children of the application are not to hold on to it.
        map.advise(Advice::DontFork)?;
        Ok(Words(map))
    }
}

impl AsRef<[AtomicU64]> for Words {
    fn as_ref(&self) -> &[AtomicU64] {
        let words = self.0.len() / size_of::<AtomicU64>();
        // SAFETY: the mapping lives as long as this borrow, begins at a page and has that length, which is sealed. Every process that has
        // it reads and writes it as such words; any bits are valid.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), words) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_the_keeper_has_made_others_find() {
        let this = std::process::id();
        let dedup = Dedup::Node { keeper: this };
        let kept = SharedChunkTable::default();
        kept.keep(Dedup::Node { keeper: this + 1 }, 7);
        assert!(kept.open(dedup, 7).is_none(), "it keeps none");
        kept.keep(dedup, 7);
        assert!(kept.open(dedup, 7).is_some());
        assert!(kept.open(Dedup::Rank, 7).is_none());
        // In the way of another rank, which has no descriptor of it.
        let other = find(this, &name(this, 7)).unwrap();
        let (one, two) = (Words::map(&other).unwrap(), Words::map(&other).unwrap());
        one.as_ref()[5].store(9, Ordering::Relaxed);
        assert_eq!(two.as_ref()[5].load(Ordering::Relaxed), 9);
        assert!(other.set_len(0).is_err(), "it is sealed");
        drop(other);
        assert!(
            SharedChunkTable::default().open(dedup, 8).is_none(),
            "another attempt"
        );
        kept.close();
        assert!(SharedChunkTable::default().open(dedup, 7).is_none());
    }
}
