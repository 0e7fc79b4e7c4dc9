//! The ways of libraries with the standard's ABI: MPICH's and those that are made of it.
//!
//! What they are built on - UCX, libfabric - watches memory by writing jumps over functions of the libc, as Open MPI does, and takes
//! signals of crashes. All of that is switched off.

use super::{Backend, rounds};

pub const BACKEND: Backend = Backend {
    // Its thread-local storage comes when it is loaded, after what comes near was measured.
    near: false,
    environment: &[
        ("UCX_MEM_EVENTS", "no"),
        ("UCX_HANDLE_ERRORS", "none"),
        ("UCX_ERROR_SIGNALS", ""),
        ("FI_MR_CACHE_MONITOR", "disabled"),
        // Memory of windows at one address on all ranks lies where a random number says, which may be among the application's.
        ("MPIR_CVAR_SHM_SYMHEAP_RETRY", "0"),
    ],
    unless_told: &[rounds::intel::YIELDS],
    loaded: Some(rounds::heavy::loaded),
    fatal: None,
    while_it_waits: Some(rounds::while_it_waits),
    pending: Some(rounds::pending),
    alone: Some(rounds::alone),
};
