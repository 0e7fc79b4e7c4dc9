//! Makes the files that `src/dispatch.rs`, `src/direct.rs` and `src/openmpi.rs` include.

use std::error::Error;

use stillpoint_generator::{Part, write};

fn main() -> Result<(), Box<dyn Error>> {
    write(Part::Shared)
}
