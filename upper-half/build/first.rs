//! Links the library so that its own functions are found by itself first: a tool's `MPI_X` calls `PMPI_X`, which must not lead
//! to the tool's `MPI_X` again (`src/ground/export.rs`). And says which programs it is for.

use std::error::Error;

use stillpoint_generator::{Part, write};

/// For programs that were built for the ABI of this name.
pub fn for_programs_of(abi: &'static str) -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Programs may rely on the libm that the real library brings.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--push-state,--no-as-needed,-lm,--pop-state");
    println!("cargo::rustc-check-cfg=cfg(application, values(\"abi\", \"mpich\", \"openmpi\"))");
    println!("cargo::rustc-cfg=application=\"{abi}\"");
    write(Part::Upper(abi))
}
