//! A restart: every MPI object is made again in a fresh lower half.
//!
//! Runs once, on the main thread, with the application's memory in place, before any other thread
//! exists. The order is that of need: predefined handles, the objects that depend only on groups and datatypes,
//! communicators, windows (in orders that all ranks share), files, and last everything that is pending.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use stillpoint_refusals::Code;

use crate::checkpoint::answer;
use crate::communicators;
use crate::ground::{abi, arch, crossing, shared};
use crate::objects::attribute::SmallerBound;
use crate::objects::outcome::{MpiResult, check};
use crate::objects::{attribute, datatype, file, group, info, operator};
use crate::operations::ahead;
use crate::operations::clock::{points, two_phase};
use crate::operations::messages::taken;
use crate::operations::{persistent, request};
use crate::stubs::{init, local};
use crate::windows;

/// `UpperHooks::rebuild`: 0, or 1 with the reason where the agent finds it.
///
/// # Safety
/// On the main thread of a restart, with the upper thread pointer, MPI started.
pub unsafe extern "C" fn hook() -> i32 {
    let inside = crossing::enter();
    // SAFETY: the caller is on the main thread of a restart, with the upper thread pointer, and MPI has started.
    let made = unsafe { everything() };
    // The thread returns through the signal frame that it was stopped in, not to a park point.
    std::mem::forget(inside);
    // SAFETY: the thread has a record of its own.
    unsafe { arch::set_inside(0) };
    match made {
        Ok(()) => 0,
        Err(RestartError::Object(code, what, error)) => {
            let error = abi::error_from_neutral(error);
            let reason =
                format_args!("the real MPI failed to make {what} again: error class {error}");
            answer::explain(code, reason);
            1
        }
        Err(RestartError::Bound(SmallerBound { told, now })) => {
            let reason = format_args!(
                "the application has been told that tags go up to {told} (MPI_TAG_UB), and this MPI library has them up to {now} only: restart it on the library that \
                 it was on"
            );
            answer::explain(Code::OtherLibrary, reason);
            1
        }
    }
}

/// Why the application cannot carry on here.
enum RestartError {
    /// The code of the refusal, the object that could not be made, and the error's class.
    Object(Code, Cow<'static, str>, i32),
    Bound(SmallerBound),
}

impl From<(Code, Cow<'static, str>, i32)> for RestartError {
    fn from((code, what, error): (Code, Cow<'static, str>, i32)) -> RestartError {
        RestartError::Object(code, what, error)
    }
}

/// # Safety
/// As [`hook`].
unsafe fn everything() -> Result<(), RestartError> {
    let step = |what: &'static str, outcome: MpiResult| {
        outcome.map_err(|error| RestartError::Object(Code::OtherLibrary, what.into(), error))
    };
    // SAFETY: only this thread runs, by the caller's promise; each step finds what it needs from the ones before.
    unsafe {
        local::resume_wtime();
        abi::initialise_predefined(&crossing::gate().services);
        if !init::active() {
            return Ok(());
        }
        speak_for_mpi();
        init::rebuild();
        attribute::under_another_library().map_err(RestartError::Bound)?;
        points::restarted();
        request::over::restarted();
        shared::restarted();
        two_phase::restarted();
        ahead::restarted();
        step("the control communicator", communicators::make_control())?;
        step("a receive", taken::rebuild())?;
        step("a group", group::rebuild())?;
        step("an info", info::rebuild())?;
        step("a datatype", datatype::rebuild())?;
        step("an operator", operator::rebuild())?;
        step("a communicator", communicators::rebuild())?;
        file::rebuild().map_err(|(what, error)| {
            RestartError::Object(Code::OtherLibrary, what.into(), error)
        })?;
        windows::rebuild()?;
        #[cfg(application = "openmpi")]
        step(
            "the send buffer",
            check(crate::operations::p2p::rebuild_buffer()),
        )?;
        step("a request", check(persistent::rebuild()))
    }
}

/// Repeats in the new gate page what `MPI_Init` said in the old one. The threads' records say which thread is the driver thread: the
/// one that started MPI, whether or not it is this one.
fn speak_for_mpi() {
    let gate = crossing::gate();
    let world = communicators::world();
    // SAFETY: `MPI_COMM_WORLD` is a predefined object, which always exists.
    unsafe {
        gate.rank.store((*world).rank, Ordering::SeqCst);
        gate.size.store((*world).size, Ordering::SeqCst);
    }
    gate.mpi_active.store(1, Ordering::SeqCst);
}
