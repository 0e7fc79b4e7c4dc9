//! The dispatch table (`wrappers/src/dispatch.rs`): one function of the lower half for every MPI function that crosses.

use std::fmt::Write;

use super::{Input, kind};

/// Writes the structure that the gate page points to.
pub fn emit(input: &Input) -> String {
    let mut text = String::new();
    text.push_str(
        "use core::ffi::{c_char, c_void};\n\nuse crate::direct::Direct;\nuse crate::extra::Extra;\nuse crate::neutral::{Status, Word};\n\n\
         /// The table; filled by the lower half in every launch.\n#[repr(C)]\npub struct Dispatch {\n",
    );
    for function in input
        .functions
        .iter()
        .filter(|function| kind::crosses(function))
    {
        let names: Vec<&str> = function
            .parameters
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        let types: Vec<String> = function.parameters.iter().map(kind::neutral_type).collect();
        let _ = writeln!(
            text,
            "/// `{}({})`.\npub {}: unsafe extern \"C\" fn({}) -> i32,",
            function.name,
            names.join(", "),
            function.rust_name(),
            types.join(", "),
        );
    }
    text.push_str("/// What is not MPI's own.\npub extra: Extra,\n/// The real MPI's own functions, for whoever has its ABI.\npub direct: Direct,\n}\n");
    text
}
