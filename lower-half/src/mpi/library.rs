//! The library that this executable is built for: its functions, and what of its values its description does not tell. One of those below, as the build
//! script says; each has the same names.

#[cfg(not(library = "openmpi"))]
mod loaded;
#[cfg(library = "mpich")]
mod mpich;
#[cfg(library = "openmpi")]
mod openmpi;
#[cfg(library = "abi")]
mod standard;
// The unit tests are those of the executable for Open MPI. What the others have beside its sources is tested there too.
#[cfg(all(test, library = "openmpi"))]
#[allow(dead_code, reason = "the tests alone need it here")]
#[path = "library/loaded/texts.rs"]
mod texts;

#[cfg(library = "mpich")]
pub use mpich::*;
#[cfg(library = "openmpi")]
pub use openmpi::*;
#[cfg(library = "abi")]
pub use standard::*;
