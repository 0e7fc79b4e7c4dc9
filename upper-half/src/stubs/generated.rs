//! The exported functions: `MPI_X` and `PMPI_X` for every function of the table that an MPI exports.
//!
//! The first name is the stub's own, the second a jump to it ([`crate::ground::export`]). A stub stays inside MPI from its
//! first line to its last. Handles are read only there, and only once the call is let through, because a
//! restart gives them new words. A stub allocates only to keep an array of handles, and never panics.
//!
//! Made by `wrappers/generator` (`emit/stubs.rs`; a sample is in `golden/stubs.rs`), a module for each class of functions.

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
