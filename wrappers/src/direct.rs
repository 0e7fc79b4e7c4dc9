//! The real MPI's own functions, for an upper half that has its ABI: nothing but handles has to be converted.
//! They return MPI's error codes as they are.
//!
//! Made by `wrappers/generator` (`emit/direct.rs`; a sample is in `golden/direct.rs`).

include!(concat!(env!("OUT_DIR"), "/direct.rs"));
