//! Intel MPI: each turn of its waits begins with the action that `I_MPI_THREAD_YIELD` selects. By default that is nothing if a host has no more ranks than
//! processors, and `sched_yield` otherwise. The library is always asked for `sched_yield`, and a function here, in its place, does what the library would have
//! done by default.
//!
//! Some turns begin before there is anything to wait for. If the program may call MPI from several threads, the library holds its lock then; at the end of the
//! turn it releases the lock and takes it again. A thread stops where it takes it.

use std::env;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{YIELD, is_pending, lead, note, stand_at, trial, wait, yield_processor};
use crate::mpi::backend::Calls;

/// The library's variable and our value, unless the user sets it: 2 is `sched_yield`. This spelling is recognized as ours.
pub const YIELDS: (&str, &str) = ("I_MPI_THREAD_YIELD", "02");

/// Whether the processor is given up in each turn.
static GIVES_UP: AtomicBool = AtomicBool::new(false);
/// Whether a thread may stop where a turn begins.
static STANDS: AtomicBool = AtomicBool::new(false);
/// Whether a thread may stop where a turn has ended.
static NOTES: AtomicBool = AtomicBool::new(false);

/// Implements [`Backend::while_it_waits`](crate::mpi::backend::Backend), by the library's version text.
pub fn while_it_waits(text: &[u8], several: bool) -> Calls {
    let told = env::var(YIELDS.0).unwrap_or_default();
    if !text.starts_with(b"Intel(R) MPI Library") || !YIELD.is_there() {
        return Calls::Never;
    }
    match told.as_str() {
        "2" => GIVES_UP.store(true, Ordering::Relaxed),
        ours if ours == YIELDS.1 => GIVES_UP.store(is_crowded(), Ordering::Relaxed),
        _ => return Calls::Never,
    }
    let lock = several.then(|| trial::tried().outer);
    STANDS.store(!several, Ordering::Relaxed);
    NOTES.store(lock.flatten().is_some(), Ordering::Relaxed);
    // SAFETY: `turn` has the type of `sched_yield`, which it replaces.
    unsafe { YIELD.lead_to(turn as *const () as usize) };
    match lock {
        None => Calls::Collective,
        Some(None) => Calls::Never,
        Some(Some(lock)) => {
            stand_at(lock);
            lead();
            Calls::Collective
        }
    }
}

/// Whether this host has more of the job's ranks than processors. The launcher reports the number of ranks.
fn is_crowded() -> bool {
    let ranks = env::var("MPI_LOCALNRANKS").ok();
    let ranks: Option<i64> = ranks.and_then(|ranks| ranks.parse().ok());
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    ranks.is_none_or(|ranks| ranks > processors)
}

/// Replaces `sched_yield`, with any FS.
unsafe extern "C" fn turn() -> c_int {
    // SAFETY: the library calls this in place of `sched_yield` while it waits, without a lock if a thread may stop there (`STANDS`).
    unsafe {
        if is_pending() {
            if STANDS.load(Ordering::Relaxed) {
                wait();
            } else if NOTES.load(Ordering::Relaxed) {
                note();
            }
        }
        match GIVES_UP.load(Ordering::Relaxed) {
            true => yield_processor(),
            false => 0,
        }
    }
}
