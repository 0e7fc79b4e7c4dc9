//! Waits by the real MPI's own functions, if it calls back while it waits ([`UpperHooks::stand`](stillpoint_wrappers::gate::UpperHooks)). Repeated questions
//! are not needed, and a library whose tests take longer than its wait (MPICH makes a round of progress in each) takes no longer than natively.
//!
//! While a checkpoint is pending the thread stands still below the real MPI's frames, as one does that waits in a receive. The frames refer to the real MPI's
//! requests: so a request that comes to its end meanwhile is looked at and left there (`request::in_wait`). If the job carries on, the real MPI goes on as if
//! nothing had been. After a restart nothing of it is left. If a request is found to have failed, the wait is left: its function returns [`AGAIN`], and the
//! call goes the long way, from its beginning.
//!
//! `MPI_Probe` and `MPI_Mprobe` do not wait in this way: the message that one of them waits for may be drained at a checkpoint, and the real MPI would wait for
//! it for ever.

use core::ffi::c_int;
use core::hint::unreachable_unchecked;

use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::gate::{AGAIN, Caller};

use crate::ground::crossing::{pending, with_upper_fs};
use crate::ground::upward_calls::above;
use crate::ground::{abi, arch};
use crate::operations::direct::{self, Stay};
use crate::operations::messages::points;
use crate::operations::request;

/// Whether a wait of the real MPI's is worth it: Open MPI's tests of finished requests make no round of progress, and take less than its waits.
pub const WORTH_IT: bool = cfg!(not(application = "openmpi"));

/// Whether a library has all of these functions.
pub fn are_there(table: &Direct) -> bool {
    let one = table.wait.is_some() && table.waitall.is_some();
    one && table.waitany.is_some() && table.waitsome.is_some()
}

/// Whether the calling thread waits in this way.
///
/// # Safety
/// The way must be open.
#[inline(always)]
pub unsafe fn possible() -> bool {
    // SAFETY: the way is open, by the caller's promise, so the thread has a record.
    unsafe { WORTH_IT && arch::is_called_back() }
}

/// A wait of the real MPI's. [`AGAIN`]: a restart has come, or a request has failed meanwhile, and the wait has completed nothing.
///
/// # Safety
/// In a stay of the short way, where this is [`possible`]; `wait` must call the real MPI once, and do nothing else.
#[inline(always)]
pub unsafe fn call(wait: impl FnOnce(&'static Direct) -> c_int) -> c_int {
    // SAFETY: only the driver thread is called back.
    unsafe { arch::begin_wait() };
    let code = wait(direct::table());
    arch::end_wait();
    code
}

/// One of the functions, which are [there](are_there) if this is [`possible`].
///
/// # Safety
/// It must be possible.
#[inline(always)]
pub unsafe fn there<F>(function: Option<F>) -> F {
    match function {
        Some(function) => function,
        // SAFETY: the way is possible, by the caller's promise, and then all of these functions are there.
        None => unsafe { unreachable_unchecked() },
    }
}

/// `MPI_Wait` of the request whose word in the real MPI is `word`.
///
/// # Safety
/// As [`call`]; `status` must be ignored or writable.
#[inline(always)]
pub unsafe fn wait(
    word: *mut stillpoint_wrappers::neutral::Word,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: the caller promises that this way is possible, and a status that is ignored or writable; `word` is an active request's.
    unsafe { call(|table| there(table.wait)(word, status.cast())) }
}

/// Ends the stay of a call that has waited: if a checkpoint is pending, the thread has told that it waits, and parks.
///
/// # Safety
/// The stub must be about to return.
#[inline(always)]
pub unsafe fn leave(stay: Stay) {
    drop(stay);
    // SAFETY: the stay shows that the thread is inside a stub, so it has a record.
    if WORTH_IT && unsafe { arch::is_shut() } {
        park();
    }
}

/// A wait is over, and the way is shut.
#[cold]
#[inline(never)]
pub fn park() {
    if pending() {
        (above().park_point)();
    }
}

/// [`UpperHooks::stand`](stillpoint_wrappers::gate::UpperHooks) of a thread that [waits](arch::waits).
///
/// # Safety
/// As the hook: `caller` must be where the real MPI was called from.
pub unsafe fn stand(caller: &Caller) {
    if !arch::take_wait(caller.sp) {
        return;
    }
    // SAFETY: inside a stub, no lock held. The stack below is not needed after a restart, nor if a request has failed that this wait may be using: none of
    // the real MPI's frames holds a lock when it calls back, and the call takes each request in its current state.
    unsafe {
        with_upper_fs(|| {
            if request::look(|| points::blocked()) {
                arch::return_to(caller, AGAIN);
            }
        });
    }
    arch::give_wait_back(caller.sp);
}
