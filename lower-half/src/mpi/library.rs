//! The library that this executable is built for: its functions, and properties of its values that its description does not give. The build script selects one
//! of the modules below; each has the same names.

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
