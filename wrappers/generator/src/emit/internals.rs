//! The upper half's exports for the library's own Fortran and C++ layers (`upper-half/src/stubs/internals.rs`): names and signatures come from the description,
//! bodies are written by hand.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, sentence};
use crate::abi::{Internal, Named};

/// Writes the functions and data.
pub fn emit(input: &Input) -> String {
    let mut text = String::new();
    for function in &input.abi.internal_functions {
        exported(&mut text, function);
    }
    for data in &input.abi.internal_data {
        let Named { name, kind, .. } = data;
        let _ = writeln!(
            text,
            "\n{}#[allow(non_upper_case_globals)] // The library's name, looked up by the dynamic linker.\n\
             #[unsafe(no_mangle)]\nstatic {name}: {kind} = fortran::{};",
            documentation(name, &data.documentation),
            own_name(name).to_uppercase(),
        );
    }
    let mut imports = Imports::of(&text);
    imports.from("core::ffi", &["c_char", "c_int", "c_void"]);
    let types = [
        "CommHandle",
        "DatatypeHandle",
        "ErrhandlerHandle",
        "Fint",
        "OpHandle",
        "RequestHandle",
        "Status",
        "WinHandle",
    ];
    imports.from("crate::ground::abi", &types);
    imports.from("crate::ground::object", &["Object"]);
    imports.modules("crate::stubs", &["fortran"]);
    imports.text() + &text
}

fn exported(text: &mut String, function: &Internal) {
    let Internal { name, result, .. } = function;
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|(name, kind)| format!("{name}: {kind}"))
        .collect();
    let names: Vec<&str> = function.parameters.iter().map(|it| it.0.as_str()).collect();
    let result = match result {
        Some(result) => format!(" -> {result}"),
        None => String::new(),
    };
    let _ = writeln!(
        text,
        "\n{}{}#[unsafe(no_mangle)]\nunsafe extern \"C\" fn {name}({}){result} {{\n\
         // SAFETY: the library's layers call it as the library's own.\n\
         unsafe {{ fortran::{}({}) }}\n}}",
        documentation(name, &function.documentation),
        foreign(name),
        parameters.join(", "),
        own_name(name).to_lowercase(),
        names.join(", "),
    );
}

/// Returns the attribute for a name that is not in Rust's style.
fn foreign(name: &str) -> &'static str {
    match name.to_lowercase() == name {
        true => "",
        false => "#[allow(non_snake_case)] // The library's name.\n",
    }
}

fn documentation(name: &str, told: &str) -> String {
    match told {
        "" => format!("/// `{name}`.\n"),
        told => format!("/// {}\n", sentence(told)),
    }
}

/// Returns the name without the library's own prefix.
fn own_name(name: &str) -> &str {
    name.split_once('_').map_or(name, |(_, own)| own)
}
