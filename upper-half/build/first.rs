//! Links the library so that its own functions are found by itself first: a tool's `MPI_X` calls `PMPI_X`, which must not lead
//! to the tool's `MPI_X` again (`src/ground/export.rs`). And says which programs it is for.

use std::error::Error;

use stillpoint_generator::{Part, write};

/// For programs that were built for the ABI of this name.
pub fn for_programs_of(abi: &'static str) -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-check-cfg=cfg(application, values(\"abi\", \"mpich\", \"openmpi\"))");
    println!("cargo::rustc-cfg=application=\"{abi}\"");
    write(Part::Upper(abi))
}
