//! Open MPI's data symbols for predefined handles, as this library defines them. If handles are numbers: their objects.
//!
//! An executable that was linked with copy relocations holds the object itself. The dynamic linker resolves every reference
//! here, as all others, to the symbol that won.
//!
//! Made by `wrappers/generator` (`emit/handles.rs`; a sample is in `golden/symbols.rs`).

include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
