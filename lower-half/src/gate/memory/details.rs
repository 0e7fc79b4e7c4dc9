//! Details of mappings that `/proc/self/smaps` shows and `/proc/self/maps` does not: advice, locks, and how a mapping was made. The kernel visits every page to
//! produce smaps, so changes are counted here, and smaps is read again only after a change.
//!
//! Rules of this place: runs in the trap's handler.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::arch::short::Large;
use crate::gate::call::Call;

/// Counts changes of details that only `/proc/self/smaps` shows; also holds the last large mapping for the short way.
static LARGE: Large = Large {
    bytes: AtomicUsize::new(0),
    address: AtomicUsize::new(0),
    changes: AtomicU64::new(0),
};

/// Returns the counters, for the short way.
pub fn large() -> &'static Large {
    &LARGE
}

/// Notes the place of a new mapping, so that it is tried again for the next mapping of that size.
pub fn placed(bytes: usize, address: usize) {
    // A reader that sees a mixture of both maps at an address that is as likely to be free as any.
    LARGE.bytes.store(0, Ordering::SeqCst);
    LARGE.address.store(address, Ordering::SeqCst);
    LARGE.bytes.store(bytes, Ordering::SeqCst);
}

/// Advice that changes only pages, not mappings. (Numbers of linux/mman.h; some C libraries lack names for them.)
pub const ADVICE_ON_PAGES: &[u32] = &{
    const MADV_COLLAPSE: u32 = 25;
    [
        libc::MADV_WILLNEED as u32,
        libc::MADV_DONTNEED as u32,
        libc::MADV_FREE as u32,
        libc::MADV_REMOVE as u32,
        libc::MADV_COLD as u32,
        libc::MADV_PAGEOUT as u32,
        libc::MADV_POPULATE_READ as u32,
        libc::MADV_POPULATE_WRITE as u32,
        MADV_COLLAPSE,
    ]
};

/// Advice that one process can give to another.
pub const ADVICE_TO_OTHERS: &[u32] = &{
    const MADV_COLLAPSE: u32 = 25;
    [
        libc::MADV_WILLNEED as u32,
        libc::MADV_COLD as u32,
        libc::MADV_PAGEOUT as u32,
        MADV_COLLAPSE,
    ]
};

/// Advice that makes pages inaccessible, since Linux 6.13 (linux/mman.h).
pub const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Whether the application may have inaccessible pages.
static GUARDS: AtomicBool = AtomicBool::new(false);

/// Whether the application may have pages that are inaccessible through advice.
pub fn may_be_guarded() -> bool {
    GUARDS.load(Ordering::SeqCst)
}

/// Notes that it has such pages.
pub fn are_guarded() {
    GUARDS.store(true, Ordering::SeqCst);
}

/// Returns how many times details of mappings have been changed.
pub fn changes() -> u64 {
    LARGE.changes.load(Ordering::SeqCst)
}

/// Counts a finished `mmap`, `brk`, or call that changes details. The count comes after the change, so that a reader with the new count sees the change.
pub fn changed() {
    LARGE.changes.fetch_add(1, Ordering::SeqCst);
}

/// `mlockall` and others that change details of mappings.
pub fn on_details(call: &mut Call) -> isize {
    counted(call, |call| call.make())
}

/// Counts a change of details that `make` makes.
pub fn counted(call: &Call, make: impl FnOnce(&Call) -> isize) -> isize {
    // The advice is an argument of `madvise`, or of `process_madvise`.
    let advice = [call.argument(2), call.argument(3)];
    if advice.contains(&(MADV_GUARD_INSTALL as usize)) {
        are_guarded();
    }
    let result = make(call);
    changed();
    result
}
