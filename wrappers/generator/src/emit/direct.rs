//! The table of the real MPI's own functions (`wrappers/src/direct.rs`), and how the real MPI fills it.

use std::fmt::Write;

use super::{Input, kind};
use crate::table::{Class, Form, Function, Parameter};

/// Functions for messages and for the completion of requests that stubs written by hand call directly.
const MESSAGES: [&str; 14] = [
    "MPI_Send",
    "MPI_Bsend",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Isend",
    "MPI_Ibsend",
    "MPI_Issend",
    "MPI_Irsend",
    "MPI_Irecv",
    "MPI_Iprobe",
    "MPI_Test",
    "MPI_Testany",
    "MPI_Testall",
    "MPI_Testsome",
];

/// Whether a generated stub calls the function directly where it can: a collective operation, blocking or not, whose
/// handles are single ones.
pub fn is_collective(function: &Function) -> bool {
    let handles = |p: &Parameter| kind::handle(&p.kind).is_some() && p.length.is_some();
    matches!(
        (function.class, function.form),
        (Class::Collective, Form::Blocking) | (Class::NonblockingCollective, Form::Started)
    ) && !function.parameters.iter().any(handles)
}

fn is_direct(function: &Function) -> bool {
    is_collective(function) || MESSAGES.contains(&function.name.as_str())
}

/// Writes the structure.
pub fn emit(input: &Input) -> String {
    let mut text = String::from(
        "use core::ffi::c_void;\n\nuse crate::neutral::Word;\n\n\
         /// The functions; filled by the lower half in every launch.\n#[repr(C)]\n#[derive(Clone, Copy)]\npub struct Direct {\n\
         /// Which ABI they have (`openmpi::ABI`).\npub abi: u64,\n",
    );
    for function in of(input) {
        let types: Vec<String> = function.parameters.iter().map(pass).collect();
        let _ = writeln!(
            text,
            "/// `{}`.\npub {}: unsafe extern \"C\" fn({}) -> i32,",
            function.name,
            function.rust_name(),
            types.join(", ")
        );
    }
    text.push_str("}\n");
    text
}

/// Writes the table of the real MPI's functions.
pub fn emit_functions(input: &Input) -> String {
    let mut text = format!(
        "use core::mem::transmute;\n\nuse stillpoint_wrappers::direct::Direct;\nuse stillpoint_wrappers::{} as abi;\n\nuse crate::mpi::library::ffi;\n\n\
         /// The table. Its handles are words: both are as large as a pointer.\n\
         #[allow(clippy::missing_transmute_annotations, reason = \"the field says what a function becomes\")]\n\
         pub const fn direct() -> Direct {{\n\
         // SAFETY: each function takes what `mpi.h` says; words stand for handles, untyped pointers for typed ones.\n\
         unsafe {{\nDirect {{\nabi: abi::ABI,\n",
        input.module
    );
    for function in of(input) {
        let _ = writeln!(
            text,
            "{}: transmute::<*const (), _>(ffi::{} as *const ()),",
            function.rust_name(),
            function.name
        );
    }
    text.push_str("}\n}\n}\n");
    text
}

fn of(input: &Input) -> impl Iterator<Item = &Function> {
    input
        .functions
        .iter()
        .filter(|function| is_direct(function))
}

/// The parameter's type: statuses are the application's own.
fn pass(parameter: &Parameter) -> String {
    kind::neutral_type(parameter).replace("Status", "c_void")
}
