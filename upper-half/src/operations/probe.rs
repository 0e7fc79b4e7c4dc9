//! Probes, and receives of messages that were probed for.

use core::ffi::c_int;

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Status;

use crate::ground::abi;
use crate::ground::arch;
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::Comm;
use crate::ground::shared::concurrent;
use crate::objects::errhandler::raise;
use crate::operations::completion::give;
use crate::operations::direct;
use crate::operations::messages::{drain, points};

mod matched;

#[cfg(not(application = "mpich"))]
pub use matched::found;
pub use matched::{improbe, imrecv, mprobe, mrecv};

/// The result of a probe.
enum Found {
    /// Nothing yet.
    Nothing,
    /// A message, or an answer that needs none (`MPI_PROC_NULL`).
    Status(Status),
}

/// Looks for a message once: among the drained ones, then below. It takes turns with the drain, which might otherwise take an earlier message away in between.
///
/// # Safety
/// Inside a stub; `comm` must be null or a handle that MPI gave.
unsafe fn look(comm: Comm, source: i32, tag: i32) -> Result<Found, i32> {
    // SAFETY: the real MPI checks the communicator's word; flag and status are local variables.
    unsafe {
        let mut queue = drain::turn();
        if !queue.is_empty()
            && let Some(status) = drain::probe(&mut queue, comm, source, tag)
        {
            return Ok(Found::Status(status));
        }
        let word = abi::word(HandleKind::Communicator, comm);
        let (mut flag, mut status) = (0, Status::default());
        let code =
            cross_near(|dispatch| (dispatch.iprobe)(source, tag, word, &mut flag, &mut status));
        match (code, flag) {
            (0, 0) => Ok(Found::Nothing),
            (0, _) => Ok(Found::Status(status)),
            (code, _) => Err(code),
        }
    }
}

/// `MPI_Iprobe`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: `objects` has checked the communicator before its word is read; MPI demands a writable flag, and a status that is ignored or writable.
    unsafe {
        if direct::open() && direct::objects([comm]) {
            let stay = direct::enter();
            if drain::nothing_waits() {
                let place = status.cast();
                let code = (direct::table().iprobe)(source, tag, (*comm).lower, flag, place);
                return stay.end(comm, code, c"MPI_Iprobe");
            }
            stay.go_back();
        }
        iprobe_converted(source, tag, comm, flag, status)
    }
}

/// # Safety
/// As [`iprobe`].
#[cold]
#[inline(never)]
unsafe fn iprobe_converted(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    // SAFETY: `look` has the real MPI check the communicator; flag and status are as MPI demands.
    unsafe {
        match look(comm, source, tag) {
            Ok(Found::Nothing) => *flag = 0,
            Ok(Found::Status(found)) => {
                *flag = 1;
                give(status, &found);
            }
            Err(code) => return raise(comm, code, c"MPI_Iprobe"),
        }
        0
    }
}

/// `MPI_Probe`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn probe(source: c_int, tag: c_int, comm: Comm, status: *mut abi::Status) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    let mut interrupted = false;
    // SAFETY: the real MPI checks the communicator at each look, also after a restart; the status is ignored or writable, as MPI demands.
    unsafe {
        let found = loop {
            match look(comm, source, tag) {
                Ok(Found::Nothing) => {}
                Ok(Found::Status(found)) => break Ok(found),
                Err(code) => break Err(code),
            }
            // With several threads the probe is repeated, in turn with the others.
            if concurrent() {
                if crossing::pending() {
                    interrupted = true;
                    points::blocked();
                } else {
                    arch::yield_processor();
                }
                continue;
            }
            let word = abi::word(HandleKind::Communicator, comm);
            let mut found = Status::default();
            match cross_near(|dispatch| (dispatch.extra.probe)(source, tag, word, &mut found)) {
                0 => break Ok(found),
                INTERRUPTED => {
                    interrupted = true;
                    points::blocked();
                }
                code => break Err(code),
            }
        };
        if interrupted {
            points::unblocked();
        }
        match found {
            Ok(found) => {
                give(status, &found);
                0
            }
            Err(code) => raise(comm, code, c"MPI_Probe"),
        }
    }
}
