//! Tests a library's rounds of progress and waits when MPI starts: which of its imported functions it calls, and which of its locks it then holds. No other
//! thread calls MPI meanwhile.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use stillpoint_wrappers::gate::HandleKind;

use super::{ASK, LOCK, NAP, UNLOCK, YIELD, heavy};
use crate::mpi::predefined::{SELF, predefined};
use crate::mpi::table;

/// `MPI_BYTE` of the standard's ABI.
const BYTE: i32 = 583;

/// The number of locks that the library holds.
static HELD: AtomicI32 = AtomicI32::new(0);
/// The only lock that it has taken while it held none; `SEVERAL`: there were several.
static OUTER: AtomicUsize = AtomicUsize::new(0);
/// Not the address of a lock.
const SEVERAL: usize = 1;
/// The lock that it took last.
static LAST: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicBool = AtomicBool::new(false);
/// The only lock that it held when it called UCX; 0: none, or several.
static GUARD: AtomicUsize = AtomicUsize::new(0);
/// Whether it has given up its processor without a lock, and with one.
static YIELDED: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// The results of the test.
pub struct Seen {
    /// Whether it calls UCX in a round.
    pub asks: bool,
    /// The only lock that it then holds.
    pub guard: Option<usize>,
    /// The only lock that it takes while it holds none.
    pub outer: Option<usize>,
    /// Whether it takes locks, as far as the test saw.
    pub locks: bool,
    /// Whether it gives up its processor in a wait, without a lock.
    pub yields: bool,
}

/// Runs the test. MPI must have just been started.
pub fn tried() -> Seen {
    // SAFETY: each function has the type of the one that it replaces, and MPI runs.
    unsafe {
        ASK.lead_to(ask as *const () as usize);
        YIELD.lead_to(yielding as *const () as usize);
        let naps = NAP.leads_to();
        NAP.lead_to(napping as *const () as usize);
        // With only one of the two, the count would be wrong.
        if LOCK.is_there() && UNLOCK.is_there() {
            LOCK.lead_to(lock as *const () as usize);
            UNLOCK.lead_to(unlock as *const () as usize);
        }
        make_a_round();
        wait();
        NAP.lead_to(naps);
    }
    for led in [&ASK, &YIELD, &LOCK, &UNLOCK] {
        led.lead_back();
    }
    let guard = GUARD.load(Ordering::Relaxed);
    let [free, locked] = YIELDED
        .each_ref()
        .map(|yielded| yielded.load(Ordering::Relaxed));
    Seen {
        asks: ASKED.load(Ordering::Relaxed),
        guard: (guard != 0).then_some(guard),
        outer: Some(OUTER.load(Ordering::Relaxed)).filter(|lock| ![0, SEVERAL].contains(lock)),
        locks: LAST.load(Ordering::Relaxed) != 0,
        yields: free && !locked,
    }
}

/// Tests a receive whose message is never sent: that takes a round of progress, like each turn of a wait. The receive is from this process itself, so that no
/// network sees it: MPICH 5 may crash when it cancels a receive of UCX's.
///
/// # Safety
/// MPI runs.
unsafe fn make_a_round() {
    /// The highest tag that every MPI supports.
    const NOBODYS: i32 = 32767;
    let Some(table) = table() else {
        return;
    };
    let byte = predefined(HandleKind::Datatype as u32, BYTE);
    let alone = predefined(HandleKind::Communicator as u32, SELF);
    let (mut nothing, mut request, mut over) = (0u8, 0, 0);
    // SAFETY: the caller says that MPI runs; a receive of no bytes writes none, the other places live on this stack, and null stands for a status that is
    // ignored.
    unsafe {
        let (place, request) = ((&raw mut nothing).cast(), &raw mut request);
        if (table.irecv)(place, 0, byte, 0, NOBODYS, alone, request) != 0 {
            return;
        }
        (table.test)(request, &raw mut over, ptr::null_mut());
        if over == 0 {
            (table.cancel)(request);
            (table.request_free)(request);
        }
    }
}

/// Waits for an operation that this process alone has begun and that completes in one round: a copy of `MPI_COMM_SELF`.
///
/// # Safety
/// MPI runs.
unsafe fn wait() {
    let Some(table) = table() else {
        return;
    };
    let alone = predefined(HandleKind::Communicator as u32, SELF);
    let (mut made, mut request) = (0, 0);
    // SAFETY: the caller says that MPI runs; the places live on this stack until the operation is complete, and null stands for a status that is ignored.
    unsafe {
        if (table.comm_idup)(alone, &raw mut made, &raw mut request) == 0
            && (table.wait)(&raw mut request, ptr::null_mut()) == 0
        {
            (table.comm_free)(&raw mut made);
        }
    }
}

unsafe extern "C" fn ask(worker: *mut c_void) -> c_uint {
    ASKED.store(true, Ordering::Relaxed);
    if HELD.load(Ordering::Relaxed) == 1 {
        GUARD.store(LAST.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    // SAFETY: the library calls this in place of UCX's function, and gives it a worker of its own.
    unsafe { super::ask(worker) }
}

/// Notes that the library gives up its processor.
fn yields() {
    let locked = HELD.load(Ordering::Relaxed) != 0;
    YIELDED[usize::from(locked)].store(true, Ordering::Relaxed);
}

unsafe extern "C" fn napping(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the library calls this in place of `nanosleep`, with a time and a place for the rest of it, either of which may be null.
    unsafe {
        if !heavy::is_between_rounds(time) {
            return super::sleep(time, left);
        }
    }
    yields();
    0
}

unsafe extern "C" fn yielding() -> c_int {
    yields();
    // SAFETY: the library's import led to the original function, which takes no arguments.
    unsafe { super::yield_processor() }
}

unsafe extern "C" fn lock(mutex: *mut c_void) -> c_int {
    if HELD.fetch_add(1, Ordering::Relaxed) == 0 {
        let others = ![0, mutex.addr()].contains(&OUTER.load(Ordering::Relaxed));
        let outer = if others { SEVERAL } else { mutex.addr() };
        OUTER.store(outer, Ordering::Relaxed);
    }
    LAST.store(mutex.addr(), Ordering::Relaxed);
    // SAFETY: the library calls this in place of `pthread_mutex_lock`, with a mutex of its own.
    unsafe { super::take(mutex) }
}

unsafe extern "C" fn unlock(mutex: *mut c_void) -> c_int {
    HELD.fetch_sub(1, Ordering::Relaxed);
    let own = UNLOCK.own();
    // SAFETY: the library's import led to this function, which has the type `Mutex`; the library gives a mutex of its own.
    unsafe { core::mem::transmute::<*const (), super::Mutex>(own)(mutex) }
}
