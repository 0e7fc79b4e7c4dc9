//! The functions of a library that is loaded at launch and has the standard's ABI, as the shims call them: each asks for the place that was
//! found under its name. Their types are the neutral ones.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, kind};
use crate::table::Function;

/// Writes the functions.
pub fn emit(input: &Input) -> String {
    let functions: Vec<&Function> = functions(input).collect();
    let mut text = format!(
        "/// What the functions are called, in the order in which they are found.\npub const NAMES: [&CStr; {}] = [\n",
        functions.len()
    );
    for function in &functions {
        let _ = writeln!(text, "c\"{}\",", function.name);
    }
    text.push_str("];\n");
    for (index, function) in functions.iter().enumerate() {
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|it| format!("{}: {}", it.name, kind::neutral_type(it)))
            .collect();
        let types: Vec<String> = function.parameters.iter().map(kind::neutral_type).collect();
        let names: Vec<&str> = function
            .parameters
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        let _ = writeln!(
            text,
            "\n/// `{name}`.\n///\n/// # Safety\n/// As the MPI function.\n\
             pub unsafe extern \"C\" fn {name}({}) -> i32 {{\n\
             let Some(function) = found({index}) else {{\nreturn absent({index});\n}};\n\
             // SAFETY: what the library has under this name is a function of this type.\n\
             unsafe {{ transmute::<*const c_void, unsafe extern \"C\" fn({}) -> i32>(function)({}) }}\n}}",
            parameters.join(", "),
            types.join(", "),
            names.join(", "),
            name = function.name,
        );
    }
    let mut imports = Imports::of(&text);
    imports.from("core::ffi", &["CStr", "c_char", "c_void"]);
    imports.from("core::mem", &["transmute"]);
    imports.line(
        "Status",
        "\nuse stillpoint_wrappers::neutral::{Status, Word};",
    );
    imports.line("found", "\nuse super::found::{absent, found};");
    let imports = imports.text();
    format!("{imports}\n{text}")
}

/// What a library of the standard's ABI may have. MPI-1's removed names are made of others.
fn functions(input: &Input) -> impl Iterator<Item = &Function> {
    let removed = |function: &Function| {
        input.abi.is_undeclared(&function.name) && !function.name.starts_with("MPIX_")
    };
    input.functions.iter().filter(move |it| {
        kind::crosses(it) && !removed(it) && it.name != super::shims::SAME_AS_ANOTHER
    })
}
