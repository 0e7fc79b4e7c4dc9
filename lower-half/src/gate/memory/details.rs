//! What `/proc/self/smaps` tells of a mapping and `/proc/self/maps` does not: advice, locks, how it was made. Who has looked at it once wants to know whether
//! it has been changed since, since the kernel goes through every page to tell it.
//!
//! Rules of this place: runs in the trap's handler.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::arch::short::Large;
use crate::gate::call::Call;

/// Counts calls that change what `/proc/self/smaps` tells of a mapping and `/proc/self/maps` does not; and what the short way knows of large mappings.
static LARGE: Large = Large {
    bytes: AtomicUsize::new(0),
    address: AtomicUsize::new(0),
    changes: AtomicU64::new(0),
};

/// For the short way.
pub fn large() -> &'static Large {
    &LARGE
}

/// New memory has been mapped at a place that is worth to be tried again when as much is asked for.
pub fn placed(bytes: usize, address: usize) {
    // Whoever reads both while they change maps at a place that is as free as another.
    LARGE.bytes.store(0, Ordering::SeqCst);
    LARGE.address.store(address, Ordering::SeqCst);
    LARGE.bytes.store(bytes, Ordering::SeqCst);
}

/// Advice that changes no mapping, only pages. (Numbers of linux/mman.h; not all have names in every C library.)
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

/// Makes pages that nobody may touch, since Linux 6.13. (linux/mman.h.)
pub const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Whether the application may have such pages.
static GUARDS: AtomicBool = AtomicBool::new(false);

/// Whether the application may have pages that nobody may touch.
pub fn may_be_guarded() -> bool {
    GUARDS.load(Ordering::SeqCst)
}

/// It has.
pub fn are_guarded() {
    GUARDS.store(true, Ordering::SeqCst);
}

/// How often details of mappings have been changed.
pub fn changes() -> u64 {
    LARGE.changes.load(Ordering::SeqCst)
}

/// `mmap`, `brk`, and calls that change details of mappings are counted when they are done: who has counted before may have seen what was before.
pub fn changed() {
    LARGE.changes.fetch_add(1, Ordering::SeqCst);
}

/// `madvise`, `mlock` and others that change details of mappings.
pub fn on_details(call: &mut Call) -> isize {
    // Of `madvise` and `process_madvise`.
    let advice = [call.argument(2), call.argument(3)];
    if advice.contains(&(MADV_GUARD_INSTALL as usize)) {
        are_guarded();
    }
    let result = call.make();
    changed();
    result
}
