//! The peculiarities of libraries with the standard's ABI: MPICH's, and those derived from it.
//!
//! The libraries below them (UCX, libfabric) watch memory by writing jumps over functions of the libc, as Open MPI does, and take over crash signals. All of
//! that is switched off.

use super::{Backend, rounds};

pub const BACKEND: Backend = Backend {
    // Its thread-local storage comes when it is loaded, after the storage for near calls was measured.
    near: false,
    environment: &[
        ("UCX_MEM_EVENTS", "no"),
        ("UCX_HANDLE_ERRORS", "none"),
        ("UCX_ERROR_SIGNALS", ""),
        ("FI_MR_CACHE_MONITOR", "disabled"),
        // Windows at one address on all ranks would lie at a random address, perhaps among the application's.
        ("MPIR_CVAR_SHM_SYMHEAP_RETRY", "0"),
        // A progress thread would call operators of the program, whose thread-local storage it does not have.
        ("MPIR_CVAR_ASYNC_PROGRESS", "0"),
        ("I_MPI_ASYNC_PROGRESS", "0"),
    ],
    unless_told: &[rounds::intel::YIELDS],
    loaded: Some(rounds::heavy::loaded),
    fatal: None,
    while_it_waits: Some(rounds::while_it_waits),
    pending: Some(rounds::pending),
    alone: None,
    answers_within: None,
    told: None,
};
