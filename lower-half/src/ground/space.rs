//! The address space that this process may have (`RLIMIT_AS`, `ulimit -v`): batch systems limit it, and programs limit it themselves.

use super::proc_files;
use crate::arch::PAGE;

/// The bytes that a start needs in addition to a part of the limit: at least for the stub library's table of clocks, the application's interpreter, libraries
/// and stack.
const LEAST: u64 = 48 << 20;
/// The part of the limit that the library of stubs takes for its table of clocks.
const PART: u64 = 16;

/// Returns the limit; `None`: there is none.
fn limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the kernel fills the structure, which lives on this stack.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Whether there is a limit.
pub fn is_limited() -> bool {
    limit().is_some()
}

/// Returns the bytes that are left of the limit; `None`: there is no limit.
pub fn left() -> Option<u64> {
    Some(limit()?.saturating_sub(used()))
}

/// Returns the bytes of addresses that the process uses.
pub fn used() -> u64 {
    let status = proc_files::by("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').next().and_then(|word| word.parse().ok());
    pages.unwrap_or(0u64) * PAGE as u64
}

/// Has threads share one heap if addresses are scarce: the C library reserves 64 MiB of them for each further heap.
pub fn be_sparing() {
    if limit().is_some() {
        // SAFETY: mallopt takes numbers and sets the most heaps that there may be; existing ones do not change.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Returns a reason if too little is left for an application to start.
pub fn too_little() -> Option<String> {
    let (limit, left) = (limit()?, left()?);
    let needed = LEAST + limit / PART;
    (left < needed).then(|| {
        format!(
            "its address space is limited to {} MiB (RLIMIT_AS, ulimit -v), of which Stillpoint and the MPI library leave {} MiB, and a program needs {} MiB to \
             start: raise the limit",
            limit >> 20,
            left >> 20,
            needed >> 20
        )
    })
}
