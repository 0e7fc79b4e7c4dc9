//! The dispatch table: one function of the lower half for every MPI function that crosses.
//!
//! Handles are words, statuses and integers with a special meaning are neutral (`crate::neutral`),
//! function pointers point into the lower half. A null status is `MPI_STATUS(ES)_IGNORE`.
//! Each function returns 0 or a neutral error code. All are called with the lower half's FS.
//!
//! Made by `wrappers/generator` (`emit/dispatch.rs`; a sample is in `golden/dispatch.rs`).

include!(concat!(env!("OUT_DIR"), "/dispatch.rs"));
