//! MPICH from 4.1 on, if it is built to do nothing where it could give up its processor between two rounds of progress, as 4.1 to 4.3 are by default. A
//! variable makes it sleep there for a nanosecond, by `nanosleep`, with no lock held. That variable is set, and a function here replaces `nanosleep` and
//! returns at once, as if there were no sleep.

use std::env;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{NAP, YIELD, is_pending, wait};

/// The variable that makes it sleep, and our value if the user does not set it. Users write 1, so this spelling is recognized as ours, also if an earlier
/// process has set it.
const SLEEPS: (&str, &str) = ("MPIR_CVAR_ENABLE_HEAVY_YIELD", "YES");

/// Whether the library sleeps because of our value.
static OURS: AtomicBool = AtomicBool::new(false);
/// Whether a thread may stop where it would sleep.
static STANDS: AtomicBool = AtomicBool::new(false);

/// Implements [`Backend::loaded`](crate::mpi::backend::Backend). A library that calls `sched_yield` does so in that place, unless it is told to sleep.
///
/// # Safety
/// No other thread may run yet.
pub unsafe fn loaded() {
    let is_told = env::var_os(SLEEPS.0).is_some_and(|told| told != SLEEPS.1);
    if !NAP.is_there() || YIELD.is_there() || is_told {
        return;
    }
    // SAFETY: the caller says that no other thread runs yet that could look at the environment.
    unsafe { env::set_var(SLEEPS.0, SLEEPS.1) };
    OURS.store(true, Ordering::Relaxed);
    // SAFETY: `nap` has the type of `nanosleep`, which it replaces.
    unsafe { NAP.lead_to(nap as *const () as usize) };
}

/// Whether a library sleeps between two rounds because of our value, by its version text. This matters for 4.1 alone: it does not sleep after a round in which
/// something has completed, and an operation of this process alone never takes two rounds. The library must have a network device and a lock for each of its
/// contexts, as it has by default.
pub fn sleeps_between_rounds(version: (u32, u32), text: &[u8]) -> bool {
    version == (4, 1) && OURS.load(Ordering::Relaxed) && has_many_locks(text)
}

fn has_many_locks(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let after = |label| text.split_once(label).map_or("", |(_, after)| after);
    let ordered = |word: &str| match word.split_once('=') {
        Some(("--enable-thread-cs", kind)) => kind == "per-vci",
        Some(("--enable-threads", kind)) => ["multiple", "runtime"].contains(&kind),
        _ => word != "--disable-threads",
    };
    after("MPICH Device:").trim_start().starts_with("ch4")
        && after("MPICH configure:").split_whitespace().all(ordered)
}

/// Sets whether a thread may stop there.
pub fn stand(stands: bool) {
    STANDS.store(stands, Ordering::Relaxed);
}

/// Replaces `nanosleep`, with any FS.
unsafe extern "C" fn nap(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the library calls this in place of `nanosleep` and gives what that takes; it waits there without a lock, so a checkpoint may come.
    unsafe {
        if !is_between_rounds(time) {
            return super::sleep(time, left);
        }
        if STANDS.load(Ordering::Relaxed) && is_pending() {
            wait();
        }
    }
    0
}

/// Whether this is the time that the library sleeps between two rounds because of our value.
///
/// # Safety
/// `time` must be null, or a time that can be read.
pub unsafe fn is_between_rounds(time: *const libc::timespec) -> bool {
    // SAFETY: the caller gives a time that can be read, or null.
    let time = unsafe { time.as_ref() };
    OURS.load(Ordering::Relaxed) && time.is_some_and(|time| time.tv_sec == 0 && time.tv_nsec == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_says_how_it_was_built() {
        for (text, many) in [
            (
                "MPICH Device:\tch4:ofi\nMPICH configure: --with-device=ch4:ofi",
                true,
            ),
            (
                "MPICH Device:       ch4:ucx\nMPICH configure: --prefix=/usr",
                true,
            ),
            (
                "MPICH Device:       ch4:ucx\nMPICH configure: --enable-thread-cs=global",
                false,
            ),
            (
                "MPICH Device:       ch4:ucx\nMPICH configure: --enable-threads=single",
                false,
            ),
            ("MPICH Device:       ch3:nemesis\nMPICH configure:", false),
            ("", false),
        ] {
            assert_eq!(has_many_locks(text.as_bytes()), many, "{text}");
        }
    }
}
