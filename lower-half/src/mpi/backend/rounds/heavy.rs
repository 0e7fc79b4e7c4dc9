//! MPICH from 4.1 on, built to do nothing where it could give its processor up between two rounds of progress, as 4.1 to 4.3 are by default. It has a variable by which it sleeps there for a
//! nanosecond, by `nanosleep`, with none of its locks held. It is asked for that, and a function here, in the place of `nanosleep`, comes back at once: as if nothing were done there.

use std::env;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{NAP, YIELD, is_pending, wait};

/// What has it sleep, and what is written there if the user says nothing. Written so, it is ours, also where a process before this one has written it: users write 1.
const SLEEPS: (&str, &str) = ("MPIR_CVAR_ENABLE_HEAVY_YIELD", "YES");

/// Whether the library sleeps because it is told to here.
static OURS: AtomicBool = AtomicBool::new(false);
/// Whether a thread may stand still where it would sleep.
static STANDS: AtomicBool = AtomicBool::new(false);

/// [`Backend::loaded`](crate::mpi::backend::Backend). One that calls `sched_yield` does so in that place, unless it is told to sleep.
///
/// # Safety
/// No other thread may run yet.
pub unsafe fn loaded() {
    let is_told = env::var_os(SLEEPS.0).is_some_and(|told| told != SLEEPS.1);
    if !NAP.is_there() || YIELD.is_there() || is_told {
        return;
    }
    // SAFETY: the caller's.
    unsafe { env::set_var(SLEEPS.0, SLEEPS.1) };
    OURS.store(true, Ordering::Relaxed);
    // SAFETY: a function of that type.
    unsafe { NAP.lead_to(nap as *const () as usize) };
}

/// Whether a library sleeps between two rounds because it is told to here, by what it says of itself. That is asked of 4.1 alone: it does not sleep after a round in which something has come to
/// its end, and nothing that a process waits for alone takes two rounds. It has a network device and locks of each of its contexts, unless it was built otherwise.
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

/// Says whether a thread may stand still there.
pub fn stand(stands: bool) {
    STANDS.store(stands, Ordering::Relaxed);
}

/// In the place of `nanosleep`, with whatever FS the thread has.
unsafe extern "C" fn nap(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the caller's time, and place for what is left of it; the library waits, without a lock.
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

/// Whether that is how long the library sleeps between two rounds, because it is told to here.
///
/// # Safety
/// A time, or null.
pub unsafe fn is_between_rounds(time: *const libc::timespec) -> bool {
    // SAFETY: the caller's.
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
