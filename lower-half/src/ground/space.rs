//! The address space that this process may have (`RLIMIT_AS`, `ulimit -v`): batch systems limit it, and programs limit it themselves.

use super::told;
use crate::arch::PAGE;

/// Bytes that a start needs besides a part of the limit: for the clocks' table of the library of stubs at least, the application's interpreter, libraries and stack.
const LEAST: u64 = 48 << 20;
/// The library of stubs takes this part of the limit for its table of clocks.
const PART: u64 = 16;

/// Returns the limit; `None`: there is none.
fn limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Whether there is a limit.
pub fn is_limited() -> bool {
    limit().is_some()
}

/// Returns the bytes that are left of the limit; `None`: there is none.
pub fn left() -> Option<u64> {
    Some(limit()?.saturating_sub(used()))
}

/// Returns the bytes of addresses that the process has.
pub fn used() -> u64 {
    let status = told::by("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').next().and_then(|word| word.parse().ok());
    pages.unwrap_or(0u64) * PAGE as u64
}

/// Has threads share one heap where addresses are scarce: the C library keeps 64 MiB of them for each other heap.
pub fn be_sparing() {
    if limit().is_some() {
        // SAFETY: says how many heaps there may be; nothing that is there changes.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Says why too little is left for an application to start, if it is.
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
