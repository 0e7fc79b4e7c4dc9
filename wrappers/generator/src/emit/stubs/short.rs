//! Functions that are written by hand and called so often that their short way is written in assembly for each processor (`upper-half/src/stubs/short.rs`,
//! which knows what each needs).

use std::fmt::Write;

use super::{export_name, kind, signature};
use crate::abi::Abi;
use crate::table::Function;

const SHORT: [&str; 13] = [
    "MPI_Send",
    "MPI_Bsend",
    "MPI_Rsend",
    "MPI_Isend",
    "MPI_Ibsend",
    "MPI_Irsend",
    "MPI_Irecv",
    "MPI_Recv",
    "MPI_Iprobe",
    "MPI_Improbe",
    "MPI_Wait",
    "MPI_Test",
    "MPI_Testany",
];

/// The one of them without a short way if handles are numbers: a message's handle has to be made.
const WIDE: &str = "MPI_Improbe";

/// Buffered sends are the upper half's own if a program may have more buffers than the process's (`upper-half/src/operations/buffered.rs`).
const BUFFERED: [&str; 2] = ["MPI_Bsend", "MPI_Ibsend"];

/// Whether a function is one of them.
pub fn is(function: &Function, abi: &Abi) -> bool {
    let name = function.name.as_str();
    let has_buffers = abi.own.iter().any(|it| it == "MPI_Buffer_flush");
    SHORT.contains(&name)
        && (kind::are_wide(abi) || name != WIDE)
        && !(has_buffers && BUFFERED.contains(&name))
}

/// Writes the exported function, which jumps to `long` with the original arguments.
pub fn stub(text: &mut String, function: &Function, long: &str) {
    let name = function.rust_name();
    let _ = writeln!(
        text,
        "\n{}#[unsafe(naked)]\nunsafe extern \"C\" fn {name}{} {{\nshort!({name}, \"{}\", {long})\n}}",
        export_name(function),
        signature(function, kind::application_type),
        function.called,
    );
}
