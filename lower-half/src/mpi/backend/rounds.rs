//! MPICH waits by rounds of progress, and calls functions of other libraries in each. While a checkpoint is pending, a function of this file replaces one of
//! those among MPICH's imports, for that library alone. Which one depends on how MPICH was built, so it is determined by a test ([`trial`]):
//!
//! * `sched_yield`, after each round, with none of its locks held: every build of 5.0.
//! * `nanosleep`, in the same place, if the library is asked for it ([`heavy`]): 4.1 to 4.3, whose builds do nothing there by default.
//! * `ucp_worker_progress` of UCX, in each round of 4.0 and 4.1. From 4.2 on, a round leaves it out if shared memory has messages; some waits that do not yield
//!   (for counters in shared memory) make rounds too.
//! * `pthread_mutex_lock`, if the program may call MPI from several threads: 4.0 releases its lock after each round and takes it again. It calls UCX with that
//!   lock held, which keeps its own thread out too. The lock is also taken at other places, so the call must be one that has already called UCX. Intel MPI does
//!   the same as 4.0 ([`intel`]).

pub mod heavy;
pub mod intel;
mod replaced_import;
mod trial;

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use stillpoint_wrappers::gate;

use self::replaced_import::ReplacedImport;
use super::{Calls, Waiting};
use crate::mpi::library::{abi, ffi};
use crate::mpi::progress;

/// `unsigned ucp_worker_progress(ucp_worker_h worker)` of ucp/api/ucp.h.
type Ask = unsafe extern "C" fn(*mut c_void) -> c_uint;
/// `sched_yield`.
type Yield = unsafe extern "C" fn() -> c_int;
/// `nanosleep`.
type Sleep = unsafe extern "C" fn(*const libc::timespec, *mut libc::timespec) -> c_int;
/// `pthread_mutex_lock` and `pthread_mutex_unlock`.
type Mutex = unsafe extern "C" fn(*mut c_void) -> c_int;

static ASK: ReplacedImport = ReplacedImport::new(c"ucp_worker_progress");
static YIELD: ReplacedImport = ReplacedImport::new(c"sched_yield");
static NAP: ReplacedImport = ReplacedImport::new(c"nanosleep");
static LOCK: ReplacedImport = ReplacedImport::new(c"pthread_mutex_lock");
static UNLOCK: ReplacedImport = ReplacedImport::new(c"pthread_mutex_unlock");

/// The function that is called while the library waits.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Whether a checkpoint is pending.
static PENDING: AtomicBool = AtomicBool::new(false);
/// The lock that the library holds in its rounds, and releases between two of them.
static GUARD: AtomicUsize = AtomicUsize::new(0);
/// The latest call that has made a round: its return address, and its stack pointer.
static MADE_BY: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Implements [`Backend::while_it_waits`](super::Backend).
///
/// # Safety
/// MPI must have just been started; `function` must be one that may be called at any moment while MPI waits.
pub unsafe fn while_it_waits(function: Waiting) -> Calls {
    let (text, several) = (text(), several_threads());
    WAITING.store(function as usize, Ordering::SeqCst);
    let Some(version) = version_in(&text) else {
        return intel::while_it_waits(&text, several);
    };
    let mut seen = trial::tried();
    seen.yields |= heavy::sleeps_between_rounds(version, &text);
    let place = choose(version, &seen, several);
    // SAFETY: the functions have the types of those that they replace: `ucp_worker_progress` and `sched_yield`.
    unsafe {
        match place {
            None => (),
            Some(StopPoint::Ask) => ASK.choose(asked as *const () as usize),
            Some(StopPoint::Yield) => {
                YIELD.choose(yielded as *const () as usize);
                if seen.asks && !several {
                    ASK.choose(asked as *const () as usize);
                }
            }
            Some(StopPoint::Lock) => {
                ASK.choose(noted as *const () as usize);
                stand_at(seen.guard.unwrap_or(0));
            }
        }
    }
    heavy::stand(place == Some(StopPoint::Yield));
    lead();
    match place {
        None => Calls::Never,
        Some(StopPoint::Ask) => Calls::Always,
        // Some of its waits test requests again and again and do not yield: `MPI_Waitany` and `MPI_Waitsome`.
        Some(StopPoint::Yield | StopPoint::Lock) => Calls::Collective,
    }
}

/// The place in a round where a thread may stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StopPoint {
    /// The call of UCX.
    Ask,
    /// The call that gives up the processor.
    Yield,
    /// The call that takes the lock.
    Lock,
}

/// Returns the place where a thread may stop, in a library that calls these functions in its rounds.
fn choose(version: (u32, u32), seen: &trial::Seen, several: bool) -> Option<StopPoint> {
    let early = version < (4, 2);
    match several {
        // A lock that was not seen being taken may be held.
        true if seen.yields && seen.locks => Some(StopPoint::Yield),
        true if early && seen.asks && seen.guard.is_some() => Some(StopPoint::Lock),
        // All waits call UCX.
        false if early && seen.asks => Some(StopPoint::Ask),
        false if seen.yields => Some(StopPoint::Yield),
        _ => None,
    }
}

/// Implements [`Backend::pending`](super::Backend).
pub fn pending(pending: bool) {
    PENDING.store(pending, Ordering::SeqCst);
    lead();
}

/// Points the library's imports to the functions for the latest state. The code that sets the state and the code that finds the imports both call this, and
/// check afterwards that the state is still the one that they have applied.
fn lead() {
    loop {
        let pending = PENDING.load(Ordering::SeqCst);
        for led in [&ASK, &YIELD, &LOCK] {
            led.follow(pending);
        }
        if PENDING.load(Ordering::SeqCst) == pending {
            return;
        }
    }
}

/// Returns the library's version text.
fn text() -> [u8; abi::MAX_LIBRARY_VERSION_STRING] {
    let (mut text, mut length) = ([0u8; abi::MAX_LIBRARY_VERSION_STRING], 0);
    // SAFETY: the buffer has the size that the standard demands, and both places live on this stack.
    unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &raw mut length) };
    text
}

/// Returns the version of MPICH, if the library is MPICH.
fn version_in(text: &[u8]) -> Option<(u32, u32)> {
    let version = text.strip_prefix(b"MPICH Version:")?.trim_ascii_start();
    let mut numbers = version
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Whether the program may call MPI from several threads at once.
fn several_threads() -> bool {
    let mut level = abi::THREAD_MULTIPLE;
    // SAFETY: MPI runs, and the place lives on this stack.
    let code = unsafe { ffi::MPI_Query_thread(&raw mut level) };
    code != 0 || level == abi::THREAD_MULTIPLE
}

/// Called while the library waits and a checkpoint may be pending.
///
/// # Safety
/// The thread must wait in MPI, without a lock of the library.
#[inline(always)]
unsafe fn wait() {
    let waiting = WAITING.load(Ordering::Relaxed) as *const ();
    // SAFETY: `while_it_waits` has stored this function, which may be called where the library waits, and the caller is in such a place.
    unsafe { core::mem::transmute::<*const (), Waiting>(waiting)() };
}

/// Whether a checkpoint is still pending.
#[inline(always)]
fn is_pending() -> bool {
    // SAFETY: the gate page is mapped as long as the process lives.
    unsafe { gate::page().pending.load(Ordering::Relaxed) != 0 }
}

/// Replaces the call of UCX, with any FS.
unsafe extern "C" fn asked(worker: *mut c_void) -> c_uint {
    // SAFETY: the library calls this in place of UCX's function while it waits, without a lock, and gives it a worker of its own.
    unsafe {
        if is_pending() {
            wait();
        }
        ask(worker)
    }
}

/// Notes that this call has made a round: it may stop when it takes the lock again.
fn note() {
    if let Some(caller) = progress::caller() {
        MADE_BY[0].store(caller.pc, Ordering::Relaxed);
        MADE_BY[1].store(caller.sp, Ordering::Relaxed);
    }
}

/// Has a call that has made a round stop when it takes this lock again. The function that notes such calls must be in place.
fn stand_at(lock: usize) {
    GUARD.store(lock, Ordering::SeqCst);
    // SAFETY: `taken` has the type of `pthread_mutex_lock`, which it replaces.
    unsafe { LOCK.choose(taken as *const () as usize) };
}

/// Replaces the call of UCX in a library that holds a lock there.
unsafe extern "C" fn noted(worker: *mut c_void) -> c_uint {
    if is_pending() {
        note();
    }
    // SAFETY: the library calls this in place of UCX's function, and gives it a worker of its own.
    unsafe { ask(worker) }
}

/// Replaces `sched_yield`, with any FS.
unsafe extern "C" fn yielded() -> c_int {
    // SAFETY: the library calls this in place of `sched_yield` while it waits, without a lock.
    unsafe {
        if is_pending() {
            wait();
        }
        yield_processor()
    }
}

/// Replaces `pthread_mutex_lock`, with any FS. A call that has not made a round does not wait yet, and may be an operation that cannot be repeated.
unsafe extern "C" fn taken(mutex: *mut c_void) -> c_int {
    // SAFETY: the library calls this in place of `pthread_mutex_lock` with a mutex of its own; a thread stops here only before it takes the lock again.
    unsafe {
        if mutex.addr() == GUARD.load(Ordering::Relaxed)
            && is_pending()
            && let Some(caller) = progress::caller()
            && MADE_BY[0].load(Ordering::Relaxed) == caller.pc
            && MADE_BY[1].load(Ordering::Relaxed) == caller.sp
        {
            wait();
        }
        take(mutex)
    }
}

/// Calls UCX's own function.
///
/// # Safety
/// The library must import the function; `worker` must be one of its workers.
#[inline(always)]
unsafe fn ask(worker: *mut c_void) -> c_uint {
    // SAFETY: the library's import led to this function, which has the type `Ask`; the caller gives the library's worker.
    unsafe { core::mem::transmute::<*const (), Ask>(ASK.own())(worker) }
}

/// Calls the libc's `sched_yield`.
///
/// # Safety
/// The library must import the function.
#[inline(always)]
unsafe fn yield_processor() -> c_int {
    // SAFETY: the library's import led to this function, which has the type `Yield`.
    unsafe { core::mem::transmute::<*const (), Yield>(YIELD.own())() }
}

/// Calls the libc's `nanosleep`.
///
/// # Safety
/// The library must import the function; `time` and `left` must be what it takes.
#[inline(always)]
unsafe fn sleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the library's import led to this function, which has the type `Sleep`; the caller gives a time and a place that it takes.
    unsafe { core::mem::transmute::<*const (), Sleep>(NAP.own())(time, left) }
}

/// Calls the libc's `pthread_mutex_lock`.
///
/// # Safety
/// The library must import the function; `mutex` must be what it takes.
#[inline(always)]
unsafe fn take(mutex: *mut c_void) -> c_int {
    // SAFETY: the library's import led to this function, which has the type `Mutex`; the caller gives the library's mutex.
    unsafe { core::mem::transmute::<*const (), Mutex>(LOCK.own())(mutex) }
}

#[cfg(test)]
mod tests {
    use super::trial::Seen;
    use super::*;

    #[test]
    fn versions_are_told_by_their_text() {
        for (text, version) in [
            ("MPICH Version:\t4.0.2\nMPICH Release date:", Some((4, 0))),
            ("MPICH Version:      4.1.3\n", Some((4, 1))),
            ("MPICH Version:      4.10.0\n", Some((4, 10))),
            ("MPICH Version:      5.0.2\n", Some((5, 0))),
            ("Intel(R) MPI Library 2021.19", None),
            ("MPICH Version:", None),
            ("", None),
        ] {
            assert_eq!(version_in(text.as_bytes()), version, "{text}");
        }
    }

    #[test]
    fn a_library_calls_back_where_it_has_no_lock() {
        let seen = |asks, lock: usize, yields| Seen {
            asks,
            guard: (asks && lock != 0).then_some(lock),
            locks: lock != 0,
            outer: None,
            yields,
        };
        for (version, seen, several, place) in [
            ((4, 0), seen(true, 0, false), false, Some(StopPoint::Ask)),
            ((4, 1), seen(true, 0, false), false, Some(StopPoint::Ask)),
            ((4, 1), seen(true, 0, true), false, Some(StopPoint::Ask)),
            ((4, 1), seen(false, 0, true), false, Some(StopPoint::Yield)),
            ((4, 0), seen(false, 0, false), false, None),
            ((4, 2), seen(true, 0, false), false, None),
            ((4, 2), seen(true, 0, true), false, Some(StopPoint::Yield)),
            ((5, 0), seen(true, 0, true), false, Some(StopPoint::Yield)),
            ((5, 0), seen(false, 0, true), false, Some(StopPoint::Yield)),
            ((4, 0), seen(true, 7, false), true, Some(StopPoint::Lock)),
            ((4, 0), seen(true, 0, false), true, None),
            ((4, 1), seen(true, 7, true), true, Some(StopPoint::Yield)),
            ((4, 2), seen(true, 7, false), true, None),
            ((4, 2), seen(true, 7, true), true, Some(StopPoint::Yield)),
            ((5, 0), seen(true, 7, true), true, Some(StopPoint::Yield)),
            ((5, 0), seen(false, 7, true), true, Some(StopPoint::Yield)),
            ((5, 0), seen(true, 0, true), true, None),
        ] {
            assert_eq!(choose(version, &seen, several), place, "{version:?}");
        }
    }
}
