//! The functions of a library that is loaded at launch, for the shims: each calls the address that was found for its name. Their types are the neutral ones.
//! Handles that have fewer bits in the library than a word are narrowed here, and widened again.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, kind};
use crate::abi::Abi;
use crate::table::{Direction, Function, Parameter};

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
        let each = || function.parameters.iter();
        let types: Vec<String> = each().map(|it| library_type(&input.abi, it)).collect();
        let arguments: Vec<String> = each().map(|it| argument(&input.abi, it)).collect();
        let _ = writeln!(
            text,
            "\n/// `{name}`.\n///\n/// # Safety\n/// As the MPI function.\n\
             pub unsafe extern \"C\" fn {name}({}) -> i32 {{\n\
             let Some(function) = found({index}) else {{\nreturn absent({index});\n}};\n\
             // SAFETY: what the library has under this name is a function of this type.",
            parameters.join(", "),
            name = function.name,
        );
        let call = format!(
            "transmute::<*const c_void, unsafe extern \"C\" fn({}) -> i32>(function)({})",
            types.join(", "),
            arguments.join(", "),
        );
        let converted: Vec<&Parameter> = each().filter(|it| is_place(&input.abi, it)).collect();
        if converted.is_empty() {
            let _ = writeln!(text, "unsafe {{ {call} }}\n}}");
            continue;
        }
        text.push_str("unsafe {\n");
        for parameter in &converted {
            let _ = writeln!(text, "{}", before(parameter));
        }
        let given: Vec<&&Parameter> = {
            let places = converted.iter();
            places.filter(|it| it.direction != Direction::In).collect()
        };
        if given.is_empty() {
            let _ = writeln!(text, "{call}\n}}\n}}");
            continue;
        }
        let _ = writeln!(text, "let code = {call};");
        for parameter in given {
            let _ = writeln!(text, "own_{}.give();", parameter.name);
        }
        text.push_str("code\n}\n}\n");
    }
    let mut imports = Imports::of(&text);
    imports.from("core::ffi", &["CStr", "c_char", "c_void"]);
    imports.from("core::mem", &["transmute"]);
    imports.line(
        "Status",
        "\nuse stillpoint_wrappers::neutral::{Status, Word};",
    );
    imports.from(
        "super::handles",
        &["HandleSlot", "List", "neighbours", "peers"],
    );
    imports.line("found", "\nuse super::found::{absent, found};");
    let imports = imports.text();
    format!("{imports}\n{text}")
}

/// Returns the functions that a library of the standard's ABI may have. MPI-1's removed names are made from others.
fn functions(input: &Input) -> impl Iterator<Item = &Function> {
    let removed = |function: &Function| {
        input.abi.is_undeclared(&function.name) && !function.name.starts_with("MPIX_")
    };
    input.functions.iter().filter(move |it| {
        kind::crosses(it) && !removed(it) && it.name != super::shims::SAME_AS_ANOTHER
    })
}

/// Whether the library has handles of the parameter's kind in 32 bits.
fn is_narrow(abi: &Abi, parameter: &Parameter) -> bool {
    let Some(handle) = kind::handle(&parameter.kind) else {
        return false;
    };
    let mut types = abi.types.iter();
    types.any(|it| it.name == handle.3 && it.kind == "c_int")
}

/// Whether the parameter points to such handles.
fn is_place(abi: &Abi, parameter: &Parameter) -> bool {
    is_narrow(abi, parameter) && kind::by_pointer(parameter)
}

/// Returns the parameter's type in the library.
fn library_type(abi: &Abi, parameter: &Parameter) -> String {
    let neutral = kind::neutral_type(parameter);
    match is_narrow(abi, parameter) {
        true => neutral.replace("Word", "i32"),
        false => neutral,
    }
}

fn argument(abi: &Abi, parameter: &Parameter) -> String {
    let name = &parameter.name;
    match (is_narrow(abi, parameter), kind::by_pointer(parameter)) {
        (false, _) => name.clone(),
        (true, false) => format!("{name} as i32"),
        (true, true) => format!("own_{name}.place()"),
    }
}

/// Makes a place of the library's kind, or a list.
fn before(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let cast = match parameter.direction {
        Direction::In => ".cast_mut()",
        _ => "",
    };
    let Some(length) = parameter.length.as_deref() else {
        return format!("let mut own_{name} = HandleSlot::at({name}{cast});");
    };
    let length = match length {
        "peers" => "peers(comm)".to_string(),
        "destinations" => "neighbours(comm).1".to_string(),
        "sources" => "neighbours(comm).0".to_string(),
        count => count.to_string(),
    };
    format!("let mut own_{name} = List::at({name}{cast}, {length});")
}
