//! The dispatch table filled with the real MPI: each function converts neutral values to the library's, calls it, and converts its results to neutral ones.
//!
//! Made by `wrappers/generator` (`emit/shims.rs`; samples are in `golden/`), a module for each class of functions.

include!(concat!(env!("OUT_DIR"), "/shims.rs"));

/// The table of the library's own functions.
mod direct {
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}
