//! MPICH where it is built for UCX: it asks UCX in each round of progress, and a wait is one round after the other. As long as a checkpoint is pending a function here stands in
//! the place of UCX's among what the library imports.
//!
//! * From 4.2 on a round leaves UCX out where shared memory has something: who waits there for a long time may never ask UCX. Those versions stay as they are.
//! * The library may import the function and never call it, where another network is chosen at launch. So it is tried.
//! * In a program that may call MPI from several threads at once the library holds a lock in its rounds, which keeps its own thread out too. It stays as it is.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stillpoint_wrappers::gate::{self, HandleKind};

use super::Waiting;
use crate::mpi::library::found::{named, own};
use crate::mpi::library::imports::Import;
use crate::mpi::library::{abi, ffi};
use crate::mpi::predefined::{WORLD, predefined};
use crate::mpi::table;

/// `unsigned ucp_worker_progress(ucp_worker_h worker)` of ucp/api/ucp.h.
type Progress = unsafe extern "C" fn(*mut c_void) -> c_uint;

/// `MPI_BYTE` of the standard's ABI.
const BYTE: i32 = 583;

/// UCX's.
static PROGRESS: AtomicUsize = AtomicUsize::new(0);
/// What is called as long as a checkpoint is pending.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Whether the library has called UCX.
static CALLED: AtomicBool = AtomicBool::new(false);
/// How it does, where it does so in each round.
static IMPORT: OnceLock<Import> = OnceLock::new();
/// Whether a checkpoint is pending.
static PENDING: AtomicBool = AtomicBool::new(false);

/// [`Backend::while_it_waits`](super::Backend).
pub unsafe fn while_it_waits(function: Waiting) -> bool {
    const NAME: &CStr = c"ucp_worker_progress";
    if !asks_in_each_round() || several_threads() {
        return false;
    }
    let import = own(c"MPI_Iprobe").and_then(|it| Import::find(it.cast(), NAME));
    let (Some(import), Some(progress)) = (import, named(NAME)) else {
        return false;
    };
    PROGRESS.store(progress.addr(), Ordering::SeqCst);
    WAITING.store(function as usize, Ordering::SeqCst);
    // SAFETY: functions of that type.
    unsafe {
        import.lead_to(tried as *const () as usize);
        make_a_round();
        import.lead_to(progress.addr());
    }
    let called = CALLED.load(Ordering::Relaxed);
    if called {
        IMPORT.get_or_init(|| import);
        lead();
    }
    called
}

/// [`Backend::pending`](super::Backend).
pub fn pending(pending: bool) {
    PENDING.store(pending, Ordering::SeqCst);
    lead();
}

/// Has the library's import lead where what was said last wants it. Who says something and who finds the import do so, and both look once more whether that is what they have written.
fn lead() {
    let Some(import) = IMPORT.get() else {
        return;
    };
    loop {
        let pending = PENDING.load(Ordering::SeqCst);
        let next = match pending {
            true => round as *const () as usize,
            false => PROGRESS.load(Ordering::SeqCst),
        };
        // SAFETY: functions of that type.
        unsafe { import.lead_to(next) };
        if PENDING.load(Ordering::SeqCst) == pending {
            return;
        }
    }
}

/// `ucs_status_t ucs_global_opts_set_value(const char *name, const char *value)` of ucs/config/global_opts.h.
type Set = unsafe extern "C" fn(*const c_char, *const c_char) -> i8;

/// [`Backend::alone`](super::Backend). UCX warns of each message and receive that it finds open.
pub unsafe fn alone() {
    if let Some(set) = named(c"ucs_global_opts_set_value") {
        // SAFETY: what has this name is such a function.
        unsafe {
            let set = core::mem::transmute::<*const c_void, Set>(set);
            set(c"LOG_LEVEL".as_ptr(), c"error".as_ptr());
        }
    }
}

/// Whether it is a version that asks UCX in each round.
fn asks_in_each_round() -> bool {
    let (mut text, mut length) = ([0u8; abi::MAX_LIBRARY_VERSION_STRING], 0);
    // SAFETY: the room that every program has for it.
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &raw mut length) };
    code == 0 && is_early(&text)
}

fn is_early(text: &[u8]) -> bool {
    let version = text
        .strip_prefix(b"MPICH Version:")
        .map(<[u8]>::trim_ascii_start);
    matches!(version, Some([b'4', b'.', b'0' | b'1', next, ..]) if !next.is_ascii_digit())
}

/// Whether the program may call MPI from several threads at once.
fn several_threads() -> bool {
    let mut level = abi::THREAD_MULTIPLE;
    // SAFETY: MPI runs; a place of ours.
    let code = unsafe { ffi::MPI_Query_thread(&raw mut level) };
    code != 0 || level == abi::THREAD_MULTIPLE
}

/// Asks whether a receive is over that nobody sends a message for: that takes a round of progress, as each turn of a wait does.
fn make_a_round() {
    /// The highest tag that every MPI has.
    const NOBODYS: i32 = 32767;
    let Some(table) = table() else {
        return;
    };
    let byte = predefined(HandleKind::Datatype as u32, BYTE);
    let world = predefined(HandleKind::Communicator as u32, WORLD);
    let (mut nothing, mut request, mut over) = (0u8, 0, 0);
    // SAFETY: MPI runs; a receive of nothing, places of ours, and a status that is ignored.
    unsafe {
        let (place, request) = ((&raw mut nothing).cast(), &raw mut request);
        if (table.irecv)(place, 0, byte, 0, NOBODYS, world, request) != 0 {
            return;
        }
        (table.test)(request, &raw mut over, ptr::null_mut());
        if over == 0 {
            (table.cancel)(request);
            (table.request_free)(request);
        }
    }
}

/// In UCX's place while it is tried whether it is called.
unsafe extern "C" fn tried(worker: *mut c_void) -> c_uint {
    CALLED.store(true, Ordering::Relaxed);
    // SAFETY: the caller's worker.
    unsafe { progress(worker) }
}

/// In UCX's place, with whatever FS the thread has.
unsafe extern "C" fn round(worker: *mut c_void) -> c_uint {
    // SAFETY: the gate page is mapped. The library waits, so the function that it was given may be called; the worker is the caller's.
    unsafe {
        if gate::page().pending.load(Ordering::Relaxed) != 0 {
            let waiting = WAITING.load(Ordering::Relaxed) as *const ();
            core::mem::transmute::<*const (), Waiting>(waiting)();
        }
        progress(worker)
    }
}

/// UCX's own.
#[inline(always)]
unsafe fn progress(worker: *mut c_void) -> c_uint {
    let progress = PROGRESS.load(Ordering::Relaxed) as *const ();
    // SAFETY: what the library's import led to; the caller's worker.
    unsafe { core::mem::transmute::<*const (), Progress>(progress)(worker) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_ask_in_each_round_are_told_by_their_text() {
        assert!(is_early(b"MPICH Version:\t4.0.2\nMPICH Release date:"));
        assert!(is_early(b"MPICH Version:      4.1.3\n"));
        assert!(!is_early(b"MPICH Version:      4.2.0\n"));
        assert!(!is_early(b"MPICH Version:      4.10.0\n"));
        assert!(!is_early(b"MPICH Version:      5.0.2\n"));
        assert!(!is_early(b"Intel(R) MPI Library 2021.19"));
        assert!(!is_early(b""));
    }
}
