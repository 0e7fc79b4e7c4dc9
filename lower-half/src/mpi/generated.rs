//! The dispatch table filled with the real MPI: each function makes the library's values out of neutral ones, calls
//! it, and makes what comes back neutral.
//!
//! Made by `wrappers/generator` (`emit/shims.rs`; samples are in `golden/`), a module for each class of functions.

include!(concat!(env!("OUT_DIR"), "/shims.rs"));

/// The table of the library's own functions.
mod direct {
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}
