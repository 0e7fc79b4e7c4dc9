//! The upper half's answer to the agent's question: what forbids a checkpoint.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use stillpoint_refusals::Code;

use crate::checkpoint::rehearsal;
use crate::ground::crossing::gate;
use crate::ground::hindrances::{self, Text};
use crate::ground::hooks::HOOKS;
use crate::objects::file;
use crate::operations::clock::two_phase;
use crate::operations::messages::drain;

struct Answer(UnsafeCell<Text>);

// SAFETY: written by the parked driver thread only; the agent reads it after the driver has answered.
unsafe impl Sync for Answer {}

static ANSWER: Answer = Answer(UnsafeCell::new(Text::new()));

/// The text's address.
pub fn address() -> u64 {
    // SAFETY: only the address is taken.
    unsafe { (*ANSWER.0.get()).address() }
}

/// Fills the text in and tells the agent whether there is any.
pub fn answer() {
    // SAFETY: only the parked driver thread comes here, and the agent reads the text after this has answered.
    let text = unsafe { &mut *ANSWER.0.get() };
    text.clear();
    if gate().mpi_active.load(Ordering::Relaxed) == 0 {
        let what = format_args!("MPI is not running (before MPI_Init, or after MPI_Finalize)");
        text.reason(Code::MpiNotRunning, what);
    }
    hindrances::describe(text);
    two_phase::describe(text);
    drain::describe(text);
    rehearsal::describe(text);
    file::describe(text);
    #[cfg(not(application = "openmpi"))]
    crate::stubs::partitioned::describe(text);
    tell(text);
}

/// Leaves the reason of a failure where the agent finds it.
pub fn explain(code: Code, reason: core::fmt::Arguments<'_>) {
    // SAFETY: see `Answer`: this is the main thread of a restart, no other thread exists.
    let text = unsafe { &mut *ANSWER.0.get() };
    text.clear();
    text.reason(code, reason);
    tell(text);
}

fn tell(text: &Text) {
    HOOKS
        .refusal_bytes
        .store(text.as_bytes().len() as u32, Ordering::Relaxed);
    gate()
        .refused
        .store(u32::from(!text.is_empty()), Ordering::SeqCst);
}
