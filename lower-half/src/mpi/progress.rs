//! The real MPI's own blocking functions, made interruptible if the library calls a function again and again while it waits
//! ([`Backend::while_it_waits`](super::backend::Backend)). Otherwise a blocking receive is a nonblocking one that is tested, and a thread that waits in a
//! collective operation waits until it is complete.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::{self, Caller, UpperHooks};

use crate::arch::{registers, unwind};
use crate::threads::Thread;

use super::backend::{BACKEND, Calls};
use super::library::ffi;
use super::table;

/// The functions in which the real MPI calls back while it waits.
static CALLS_BACK: OnceLock<Calls> = OnceLock::new();

/// Implements `Services::receive`. MPI must be running.
///
/// # Safety
/// With the lower FS.
pub unsafe extern "C" fn receive() -> u64 {
    match table() {
        Some(table) if CALLS_BACK.get() == Some(&Calls::Always) => table
            .direct
            .recv
            .map_or(ffi::MPI_Recv as *const (), |own| own as *const ())
            as u64,
        _ => 0,
    }
}

/// Has [`waiting`] called, if that is possible. MPI must be running.
pub fn prepare() {
    CALLS_BACK.get_or_init(register);
}

/// Whether a thread that waits in a collective operation of the real MPI can stop there.
pub fn calls_back() -> bool {
    CALLS_BACK.get() >= Some(&Calls::Collective)
}

/// Notes whether a checkpoint is pending.
pub fn pending(pending: bool) {
    if let Some(tell) = BACKEND.pending {
        tell(pending);
    }
}

/// Has [`waiting`] called, and returns in which functions that is possible.
fn register() -> Calls {
    // SAFETY: `waiting` may be called at any moment while the real MPI waits, with any FS, which is what `while_it_waits` demands.
    BACKEND
        .while_it_waits
        .map_or(Calls::Never, |register| unsafe { register(waiting) })
}

/// Called by the real MPI on a thread that waits, with whatever FS it has. Returns that nothing has happened.
unsafe extern "C" fn waiting() -> c_int {
    // SAFETY: the gate page is mapped; the pointer is null or that of the hooks, which the upper half never frees. `waiting` may be called where MPI waits.
    unsafe {
        let page = gate::page();
        if page.pending.load(Ordering::Relaxed) != 0
            && let Some(hooks) = (page.hooks.load(Ordering::Acquire) as *const UpperHooks).as_ref()
        {
            if let Some(waiting) = hooks.waiting {
                waiting();
            }
            stand(hooks);
        }
    }
    0
}

/// Lets a thread stop that waits in a collective operation, if the upper half wants that. In a restarted process, it never returns here.
///
/// # Safety
/// On a thread that waits in the real MPI.
unsafe fn stand(hooks: &UpperHooks) {
    if !hooks.is_whole() || Thread::current().is_none() {
        return;
    }
    let (Some(stands), Some(stand)) = (hooks.stands, hooks.stand) else {
        return;
    };
    // SAFETY: this is a thread of the upper half that waits in the real MPI, which is what the hooks demand; `caller` lives on this stack.
    unsafe {
        let asked = &gate::page().asked;
        if asked.load(Ordering::Relaxed) != 0
            && Thread::current().is_some_and(|thread| thread.is_driver())
            && let (Some(look_up), Some(caller)) = (hooks.look_up, caller())
        {
            asked.store(0, Ordering::Relaxed);
            look_up(&caller);
        }
        if stands() != 0
            && let Some(caller) = caller()
        {
            stand(&caller);
        }
    }
}

/// Returns the place from which the thread has called the real MPI.
pub(super) fn caller() -> Option<Caller> {
    let area = Thread::current()?.fs_lower();
    let before = registers::fs();
    if area == 0 || before == area {
        return unwind::caller();
    }
    // SAFETY: the area is this thread's own, and not in use: the thread has come here without a crossing. The code between the switches belongs to it.
    unsafe {
        registers::set_fs(area);
        let caller = unwind::caller();
        registers::set_fs(before);
        caller
    }
}
