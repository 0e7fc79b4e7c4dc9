//! Makes the filled dispatch table that `src/mpi/generated.rs` includes.

use std::error::Error;

use stillpoint_generator::{Part, write};

#[path = "build/first.rs"]
mod first;

fn main() -> Result<(), Box<dyn Error>> {
    first::found_first();
    first::library("openmpi");
    println!("cargo::rerun-if-changed=build/first.rs");
    write(Part::Lower("openmpi"))
}
