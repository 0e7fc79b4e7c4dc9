//! Open MPI's data symbols for predefined handles, as this library defines them. Where handles are numbers, their objects.
//!
//! An executable that was linked with copy relocations holds the object itself; every reference here is
//! resolved by the dynamic linker, like everybody else's, to whichever one won.
//!
//! Made by `wrappers/generator` (`emit/handles.rs`; a sample is in `golden/symbols.rs`).

include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
