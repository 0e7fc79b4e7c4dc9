//! MPICH's ways, and those of what is made of it.
//!
//! What they are built on - UCX, libfabric - watches memory by writing jumps over functions of the libc, as Open MPI does, and takes
//! signals of crashes. All of that is switched off.
//!
//! It has nothing that is called while it waits: a blocking receive whose message is not there yet is a nonblocking one that is asked for its end, and who waits in a
//! collective operation waits until it is over.

use super::Backend;

pub const BACKEND: Backend = Backend {
    near: true,
    environment: &[
        ("UCX_MEM_EVENTS", "no"),
        ("UCX_HANDLE_ERRORS", "none"),
        ("UCX_ERROR_SIGNALS", ""),
        ("FI_MR_CACHE_MONITOR", "disabled"),
    ],
    fatal: None,
    while_it_waits: None,
    alone: None,
};
