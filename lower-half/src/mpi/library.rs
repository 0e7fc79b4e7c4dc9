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

#[cfg(library = "mpich")]
pub use mpich::*;
#[cfg(library = "openmpi")]
pub use openmpi::*;
#[cfg(library = "abi")]
pub use standard::*;
