//! Intel MPI: where it waits, each turn begins with what `I_MPI_THREAD_YIELD` says, which is nothing as long as a host has no more ranks than processors, and `sched_yield` where it
//! has. It is asked for `sched_yield` always, and a function here, in the place of that, does what the library would have done of itself.
//!
//! Some turns begin before there is anything to wait for. Where the program may call MPI from several threads the library has its lock then, and gives it up at the end of the turn and
//! takes it again: a thread stands where it takes it.

use std::env;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{YIELD, is_pending, lead, note, stand_at, trial, wait, yield_processor};
use crate::mpi::backend::Calls;

/// What the library shall find unless the user says something else: 2 is `sched_yield`. Written so, it is ours.
pub const YIELDS: (&str, &str) = ("I_MPI_THREAD_YIELD", "02");

/// Whether the processor is given up in each turn.
static GIVES_UP: AtomicBool = AtomicBool::new(false);
/// Whether a thread may stand still where a turn begins.
static STANDS: AtomicBool = AtomicBool::new(false);
/// Whether a thread may stand still where a turn has ended.
static NOTES: AtomicBool = AtomicBool::new(false);

/// [`Backend::while_it_waits`](crate::mpi::backend::Backend), by the library's text.
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
    // SAFETY: a function of that type.
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

/// Whether this host has more of the job's ranks than processors. The launcher says how many ranks.
fn is_crowded() -> bool {
    let ranks = env::var("MPI_LOCALNRANKS").ok();
    let ranks: Option<i64> = ranks.and_then(|ranks| ranks.parse().ok());
    // SAFETY: takes a number.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    ranks.is_none_or(|ranks| ranks > processors)
}

/// In the place of `sched_yield`, with whatever FS the thread has.
unsafe extern "C" fn turn() -> c_int {
    // SAFETY: the library waits, without a lock where a thread may stand.
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
