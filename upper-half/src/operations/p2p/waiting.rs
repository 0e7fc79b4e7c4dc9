//! `MPI_Recv` by the real MPI's own `MPI_Recv`, which needs no request for each message. If the real MPI can say while it waits
//! that it does ([`UpperHooks::waiting`](stillpoint_wrappers::gate::UpperHooks)), the thread parks below it.
//!
//! A checkpoint that lets the job carry on returns to the real MPI, whose receive is still posted. After a restart nothing of it is
//! left: the stub begins anew. A message that comes to its end while the thread is parked is in the application's buffer, but
//! not counted: so the park point is left now and then while messages are drained, for the real MPI to look at its receive.
//! The receive never waits for a drained message: it would have had that one first.
//!
//! Rules: [`hook`] runs on the application's stack, in the middle of the real MPI. If it finds a receive, it runs with the upper half's
//! FS, otherwise with any.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::receive::{ERR_TRUNCATE, recv_otherwise};
use crate::ground::abi;
use crate::ground::arch;
use crate::ground::crossing::{StayKind, cross_service, dispatch};
use crate::ground::object::{Comm, Datatype};
use crate::ground::upward_calls::above;
use crate::objects::errhandler::raise;
use crate::operations::clock::points::restarts;
use crate::operations::completion;
use crate::operations::direct;
use crate::operations::messages::{drain, points};

/// Whether the driver thread is parked below a receive.
static PARKED: AtomicBool = AtomicBool::new(false);

/// Lets the calling thread receive in this way, and wait by the real MPI's own functions (`completion::real_wait`), if the real MPI of this launch calls back.
/// Only the driver thread: another one, once it is stopped, could not look whether its receive is over.
///
/// # Safety
/// As `cross_service`, on a thread whose way is direct.
pub unsafe fn prepare() {
    // SAFETY: the way is direct, by the caller's promise, so the thread has a record; `receive` there is changed by atomic operations only.
    unsafe {
        if arch::is_driver() {
            let mut function = 0;
            if completion::real_wait::are_there(&dispatch().direct) {
                function =
                    cross_service(|services| services.receive.map_or(0, |receive| receive()));
            }
            (*arch::record()).receive.store(function, Ordering::Relaxed);
        }
    }
}

/// Whether the thread that is parked must look at its receive again, to know whether it is over.
pub fn parked() -> bool {
    PARKED.load(Ordering::Relaxed)
}

/// `UpperHooks::waiting`: a checkpoint is pending, and the real MPI waits for something.
///
/// # Safety
/// On a thread that the real MPI waits on.
pub unsafe extern "C" fn hook() {
    let Some(stack) = arch::take_receive() else {
        return;
    };
    let before = restarts();
    PARKED.store(true, Ordering::Relaxed);
    // SAFETY: inside a stub, no lock held. What is below on the stack is not needed after a restart.
    unsafe { points::blocked() };
    PARKED.store(false, Ordering::Relaxed);
    if restarts() != before {
        // SAFETY: nothing between here and the stub is there any more.
        unsafe { arch::leave_receive(stack) }
    }
    arch::give_receive_back(stack);
}

arch::resumable_receive!(
    failed: receive_has_failed,
    anew: receive_begins_anew,
    at_checkpoint: received_at_checkpoint,
    drained: drain::WAITING,
    otherwise: recv_otherwise
);

/// The receive has returned, and a checkpoint is pending.
pub extern "C" fn received_at_checkpoint() -> c_int {
    (above().park_point)();
    0
}

/// The receive has returned an error.
///
/// # Safety
/// Inside the stub; arguments as the application gave them.
pub unsafe extern "C" fn receive_has_failed(
    _buf: *mut c_void,
    _count: c_int,
    _datatype: Datatype,
    _source: c_int,
    _tag: c_int,
    comm: Comm,
    _status: *mut abi::Status,
) -> c_int {
    // SAFETY: the thread was in the application before it began to receive.
    unsafe {
        arch::be_inside::<{ StayKind::No as u32 }>();
        let _stay = direct::enter();
        let error = direct::error(arch::code_of_receive());
        if error == ERR_TRUNCATE {
            arch::count_received();
        }
        raise(comm, error, c"MPI_Recv")
    }
}

/// A restart has come while the receive waited.
///
/// # Safety
/// As [`receive_has_failed`].
pub unsafe extern "C" fn receive_begins_anew(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: the thread was in the application before it began to receive.
    unsafe {
        arch::be_inside::<{ StayKind::No as u32 }>();
        recv_otherwise(buf, count, datatype, source, tag, comm, status)
    }
}
