//! The tables of MPI functions and constants (`wrappers/table/`), the descriptions of MPIs' own ABIs (`wrappers/abi/`), and the code generated from them
//! whenever `wrappers`, the upper half or the lower half is built. Their build scripts call [`write`], and `include!` the files in their `OUT_DIR`.
//!
//! Everything between reading the tables and writing the files is a pure function from tables and descriptions to text. The text for a few functions and
//! constants is kept in `golden/`, for readers and for a test.

pub mod abi;
pub mod constants;
pub mod emit;
pub mod large;
mod layout;
#[cfg(test)]
mod standard;
pub mod table;

use std::path::Path;

pub use emit::Part;

/// Writes the files of a part into `OUT_DIR`, for build scripts.
pub fn write(part: Part) -> Result<(), Box<dyn std::error::Error>> {
    // The tables and descriptions are in this library: when they change, Cargo rebuilds it and the build script, and runs that.
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var_os("OUT_DIR").ok_or("no OUT_DIR: this is for build scripts")?;
    for output in emit::outputs(part)? {
        std::fs::write(Path::new(&folder).join(output.name), output.text)?;
    }
    Ok(())
}
