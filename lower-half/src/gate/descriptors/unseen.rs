//! Descriptors that the application receives without a call that makes them: by operations of an `io_uring`, and with events of `fanotify`. Once such
//! descriptors are possible, a descriptor that is neither noted nor older than that counts as the application's when the application names it. A descriptor
//! that the lower half makes later cannot be told from those; a checkpoint refuses while there is one.
//!
//! Rules of this place: as the parent's.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{is_open, is_upper, note};
use crate::arch::layout::DESCRIPTOR_LIMIT;
use crate::arch::syscall::failed;

static BEGUN: AtomicBool = AtomicBool::new(false);
/// The lower half's descriptors from before, one bit each.
static OLD: [AtomicU64; DESCRIPTOR_LIMIT / 64] =
    [const { AtomicU64::new(0) }; DESCRIPTOR_LIMIT / 64];

/// Makes a source of such descriptors; if it succeeds, they are possible from now on.
pub fn source(make: impl FnOnce() -> isize) -> isize {
    if !BEGUN.load(Ordering::Relaxed) {
        for fd in 0..DESCRIPTOR_LIMIT {
            let Some(word) = OLD.get(fd / 64) else { break };
            if !is_upper(fd) && is_open(fd) {
                word.fetch_or(1 << (fd % 64), Ordering::Relaxed);
            } else {
                word.fetch_and(!(1 << (fd % 64)), Ordering::Relaxed);
            }
        }
    }
    let result = make();
    if !failed(result) {
        BEGUN.store(true, Ordering::Relaxed);
    }
    result
}

/// Whether a descriptor that has not been noted came to the application unseen; if so, it is noted.
pub fn is_new(fd: usize) -> bool {
    let new = is_nobodys(fd);
    if new {
        note(fd);
    }
    new
}

fn is_nobodys(fd: usize) -> bool {
    let old = |fd: usize| {
        OLD.get(fd / 64)
            .is_none_or(|word| word.load(Ordering::Relaxed) & 1 << (fd % 64) != 0)
    };
    BEGUN.load(Ordering::Relaxed) && !old(fd) && !is_upper(fd) && is_open(fd)
}

/// Returns the descriptors that may be the application's.
pub fn doubtful() -> Vec<usize> {
    (0..DESCRIPTOR_LIMIT).filter(|fd| is_nobodys(*fd)).collect()
}
