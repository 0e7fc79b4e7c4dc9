//! Error handlers: the handler of each object, and the course of a failed MPI function.
//!
//! The lower half always returns its errors (`MPI_ERRORS_RETURN`); a stub that gets one calls [`raise`],
//! which runs the application's own handler here, under the application's thread pointer. Only
//! `MPI_ERRORS_ARE_FATAL` goes down again: the real MPI prints its own message and ends the job.

mod calls;
mod invoke;
mod run;
mod table;

pub use calls::*;
#[cfg(not(application = "openmpi"))]
pub use invoke::raise_by;
pub use invoke::{outside, raise, raise_own};
pub use run::run;
#[cfg(not(application = "openmpi"))]
pub use table::Held;
#[cfg(application = "mpich")]
pub use table::make_cxx;
pub use table::{Function, Handler, end, forget, inherit, initialise, new_handler, set_handler};
