//! Makes the stubs, and what of the application's ABI is the upper half's alone, for `src/stubs/generated.rs` and `src/ground/abi.rs` to include.
//!
//! Links the library so that its own functions are found by itself first: a tool's `MPI_X` calls `PMPI_X`, which must not lead
//! to the tool's `MPI_X` again (`src/ground/export.rs`).

use std::error::Error;

use stillpoint_generator::{Part, write};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    write(Part::Upper("openmpi"))
}
