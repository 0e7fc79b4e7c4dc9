//! The real MPI's own functions, for an upper half that has its ABI: only handles have to be converted. They return MPI's error codes unchanged.
//!
//! Made by `wrappers/generator` (`emit/direct.rs`; a sample is in `golden/direct.rs`).

include!(concat!(env!("OUT_DIR"), "/direct.rs"));
