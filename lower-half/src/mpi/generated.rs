//! The dispatch table filled with Open MPI: each function makes Open MPI's values out of neutral ones, calls
//! it, and makes what comes back neutral.
//!
//! Made by `wrappers/generator` (`emit/shims.rs`; samples are in `golden/`), a module for each class of functions.

include!(concat!(env!("OUT_DIR"), "/shims.rs"));

/// The table of Open MPI's own functions.
mod direct {
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

/// Open MPI's data symbols for predefined handles, as its library defines them.
pub mod symbols {
    include!(concat!(env!("OUT_DIR"), "/addresses.rs"));
}
