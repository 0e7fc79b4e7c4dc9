//! The table of the real MPI's own functions (`wrappers/src/direct.rs`), and the code with which the real MPI fills it.

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

/// Functions that were added to the table later, at its end, in this order: a library may lack them.
const LATER: [&str; 12] = [
    "MPI_Recv",
    "MPI_Psend_init",
    "MPI_Precv_init",
    "MPI_Pready",
    "MPI_Pready_range",
    "MPI_Pready_list",
    "MPI_Parrived",
    "MPI_Improbe",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
];

/// Whether a generated stub calls the function directly if possible: a collective operation, blocking or not, whose handles are single ones.
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
    for function in later(input) {
        let types: Vec<String> = function.parameters.iter().map(pass).collect();
        let _ = writeln!(
            text,
            "/// `{}`, if the library has it.\npub {}: Option<unsafe extern \"C\" fn({}) -> i32>,",
            function.name,
            function.rust_name(),
            types.join(", ")
        );
    }
    text.push_str("}\n");
    text
}

/// Writes the table of the real MPI's functions, as they are linked or were found.
pub fn emit_functions(input: &Input) -> String {
    let loaded = input.module != LINKED;
    let found = if loaded { ", found" } else { "" };
    let mut text = format!(
        "use core::mem::transmute;\n\nuse stillpoint_wrappers::direct::Direct;\nuse stillpoint_wrappers::{} as abi;\n\nuse crate::mpi::library::{{ffi{found}}};\n\n\
         /// The table. Its handles are words: the library's are as large, or their lower half.\n\
         #[allow(clippy::missing_transmute_annotations, reason = \"the field says what a function becomes\")]\n\
         pub fn direct() -> Direct {{\n\
         // SAFETY: each function takes what `mpi.h` says; words stand for handles, untyped pointers for typed ones.\n\
         unsafe {{\nDirect {{\nabi: abi::ABI,\n",
        input.module
    );
    for function in of(input) {
        let (field, name) = (function.rust_name(), &function.name);
        let ours = format!("ffi::{name} as *const ()");
        let _ = match loaded {
            true => writeln!(
                text,
                "{field}: transmute::<*const (), _>(found::own(c\"{name}\").unwrap_or({ours})),"
            ),
            false => writeln!(text, "{field}: transmute::<*const (), _>({ours}),"),
        };
    }
    for function in later(input) {
        let (field, name) = (function.rust_name(), &function.name);
        let _ = match (loaded, function.form == Form::Absent) {
            (true, _) => writeln!(
                text,
                "{field}: found::own(c\"{name}\").map(|it| transmute::<*const (), _>(it)),"
            ),
            (false, true) => writeln!(text, "{field}: None,"),
            (false, false) => writeln!(
                text,
                "{field}: Some(transmute::<*const (), _>(ffi::{name} as *const ())),"
            ),
        };
    }
    text.push_str("}\n}\n}\n");
    text
}

/// The ABI of the library that its lower half is linked to: it has the functions of Open MPI 4.1.
const LINKED: &str = "openmpi";

fn later(input: &Input) -> impl Iterator<Item = &Function> {
    let all = &input.functions;
    LATER
        .iter()
        .filter_map(move |name| all.iter().find(|function| function.name == *name))
}

fn of(input: &Input) -> impl Iterator<Item = &Function> {
    input
        .functions
        .iter()
        .filter(|function| is_direct(function))
}

/// Returns the parameter's type: statuses are the application's own.
fn pass(parameter: &Parameter) -> String {
    kind::neutral_type(parameter).replace("Status", "c_void")
}
