//! Makes the stubs, and the upper half's part of the application's ABI, for `src/stubs/generated.rs` and `src/ground/abi.rs` to include.

use std::error::Error;

#[path = "build/first.rs"]
mod first;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build/first.rs");
    first::for_programs_of("openmpi")
}
