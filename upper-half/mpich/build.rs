//! As the build script of `..`, for programs that were built for MPICH's ABI.

use std::error::Error;

#[path = "../build/first.rs"]
mod first;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../build/first.rs");
    first::for_programs_of("mpich")
}
