//! As the build script of `..`, for a library that is loaded at launch.

use std::error::Error;

use stillpoint_generator::{Part, write};

#[path = "../build/first.rs"]
mod first;

fn main() -> Result<(), Box<dyn Error>> {
    first::found_first();
    first::library("mpich");
    println!("cargo::rerun-if-changed=../build/first.rs");
    write(Part::Loaded("mpich"))
}
