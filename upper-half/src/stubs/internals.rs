//! The internals that the Fortran and C++ layers of the application's MPI call and read: exported under the library's own names.
//!
//! Made by `wrappers/generator` (`emit/internals.rs`; a sample is in `golden/internals.rs`) from the description of the ABI; the bodies are in `fortran.rs`.

include!(concat!(env!("OUT_DIR"), "/internals.rs"));
