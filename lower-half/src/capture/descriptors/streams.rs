//! Standard input, output and error as the launcher gave them: they come from the new launch, whatever
//! they were in the old one.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use super::same::{self, Same};
use super::{LIVING, Open, owned};
use crate::capture::contents::FileKey;
use crate::ground::inherited;

/// Our own duplicates of 0, 1 and 2, made before the application's first instruction.
static STREAMS: OnceLock<[Option<OwnedFd>; 3]> = OnceLock::new();

/// What else the launcher had left open: pipes and sockets that no program knows of. They are not the
/// application's to lose.
static LEFT_OPEN: OnceLock<Vec<(RawFd, FileKey)>> = OnceLock::new();

/// Numbers from here on are tried for the duplicates, so that the application's own come out as they
/// would without us.
const FROM: RawFd = 900;

/// Remembers what 0, 1 and 2 are. Must be called in every launch before the application (or its
/// descriptors) can change them.
pub fn remember() {
    STREAMS.get_or_init(|| [0, 1, 2].map(|number| duplicate(number).ok()));
    LEFT_OPEN.get_or_init(|| {
        let others = inherited::descriptors()
            .map(|number| number as RawFd)
            .filter(|number| *number > 2);
        others
            .filter_map(|number| Some((number, Open::look(number, LIVING).ok()?.key())))
            .collect()
    });
}

fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes a number and touches no memory.
    let high = owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FROM) });
    // SAFETY: as above.
    high.or_else(|_| owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }))
}

/// The remembered stream's descriptor in this launch; `None` where the launcher gave none.
pub fn remembered(stream: i32) -> Option<RawFd> {
    STREAMS
        .get()?
        .get(stream as usize)?
        .as_ref()
        .map(AsRawFd::as_raw_fd)
}

/// Which of the launcher's streams a descriptor is, if any.
pub(super) fn inherited(open: &Open) -> Option<i32> {
    (0..3).find(|stream| {
        remembered(*stream)
            .filter(|number| leads_to(*number) == Some(open.key()))
            .and_then(|number| Open::look(number, LIVING).ok())
            .is_some_and(|remembered| same::compare(&remembered, open) != Same::Two)
    })
}

/// The file that a number leads to.
fn leads_to(number: RawFd) -> Option<FileKey> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: fstat fills the structure, for which zeros are valid too.
    let status = unsafe {
        if libc::fstat(number, status.as_mut_ptr()) != 0 {
            return None;
        }
        status.assume_init()
    };
    Some(FileKey {
        device: status.st_dev,
        inode: status.st_ino,
    })
}

/// Whether the descriptor is a pipe or socket that the launcher had left open.
pub(super) fn left_open(open: &Open) -> bool {
    matches!(open.file_type(), libc::S_IFIFO | libc::S_IFSOCK)
        && LEFT_OPEN
            .get()
            .is_some_and(|known| known.contains(&(open.number, open.key())))
}
