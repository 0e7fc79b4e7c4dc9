//! The lower half's side of the dispatch table for Open MPI (`lower-half/src/mpi/generated.rs`), a module for each class.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, kind};
use crate::abi::Abi;
use crate::table::{CLASSES, Direction, Function, Parameter};

/// Shims written by hand, in `lower-half/src/mpi/attributes.rs`.
const BY_HAND: [&str; 3] = ["MPI_Comm_get_attr", "MPI_Attr_get", "MPI_Win_get_attr"];

/// Writes the shims, the missing declarations and the filled table.
pub fn emit(input: &Input) -> String {
    let functions: Vec<&Function> = input
        .functions
        .iter()
        .filter(|f| kind::crosses(f))
        .collect();
    let mut text = String::from(
        "use stillpoint_wrappers::dispatch::Dispatch;\nuse stillpoint_wrappers::extra::Extra;\n\nuse super::attributes;\n\n",
    );
    let mut modules = String::new();
    let mut fields = String::new();
    for (class, name) in CLASSES {
        let module = name.replace('-', "_");
        let mut bodies = String::new();
        for function in functions.iter().filter(|f| f.class == class) {
            let rust = function.rust_name();
            if BY_HAND.contains(&function.name.as_str()) {
                let _ = writeln!(fields, "{rust}: attributes::{rust},");
                continue;
            }
            shim(&mut bodies, function, &input.abi);
            let _ = writeln!(fields, "{rust}: {module}::{rust},");
        }
        if !bodies.is_empty() {
            let imports = imports(&bodies, input.module);
            let _ = writeln!(modules, "\nmod {module} {{\n{imports}{bodies}}}");
        }
    }
    text.push_str(
        "/// The table, with what is not MPI's own.\npub const fn dispatch(extra: Extra) -> Dispatch {\nDispatch {\n",
    );
    text.push_str(&fields);
    text.push_str("extra,\ndirect: direct::direct(),\n}\n}\n");
    text.push_str(&modules);
    missing(&mut text, &functions, &input.abi);
    text
}

fn imports(shims: &str, module: &str) -> String {
    let mut imports = Imports::of(shims);
    imports.from("core::ffi", &["c_char", "c_void"]);
    imports.line("ffi", "\nuse mpi_sys as ffi;");
    imports.from("stillpoint_wrappers::neutral", &["Status", "Word"]);
    let line = format!("use stillpoint_wrappers::{module} as abi;");
    imports.line("abi", &line);
    imports.line("missing", "\nuse super::missing;");
    imports.from("crate::mpi", &["convert"]);
    imports.text()
}

fn shim(text: &mut String, function: &Function, abi: &Abi) {
    let name = function.rust_name();
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, kind::neutral_type(parameter)))
        .collect();
    let _ = writeln!(
        text,
        "\npub unsafe extern \"C\" fn {name}({}) -> i32 {{\n\
         // SAFETY: the stub passes on what the application gave it, and places of its own for results.\nunsafe {{",
        parameters.join(", ")
    );
    for parameter in &function.parameters {
        before(text, parameter);
    }
    let arguments: Vec<String> = function.parameters.iter().map(argument).collect();
    let home = if abi.is_undeclared(&function.name) {
        "missing"
    } else {
        "ffi"
    };
    let call = format!("{home}::{}({})", function.name, arguments.join(", "));
    if function.parameters.iter().any(gives_back) {
        let _ = writeln!(text, "let code = {call};");
        for parameter in function
            .parameters
            .iter()
            .filter(|parameter| gives_back(parameter))
        {
            after(text, parameter);
        }
        text.push_str("abi::error_to_neutral(code)\n}\n}\n");
    } else {
        let _ = writeln!(text, "abi::error_to_neutral({call})\n}}\n}}");
    }
}

fn is_array(parameter: &Parameter) -> bool {
    parameter
        .length
        .as_deref()
        .is_some_and(|length| length != "*")
}

/// Whether what comes back has to be converted.
fn gives_back(parameter: &Parameter) -> bool {
    let converted = parameter.kind == "status"
        || kind::is_special(&parameter.kind) && parameter.length.as_deref() != Some("*");
    converted && parameter.direction != Direction::In
}

fn before(text: &mut String, parameter: &Parameter) {
    let name = &parameter.name;
    let kind = parameter.kind.as_str();
    let mutable = if parameter.direction == Direction::In {
        ""
    } else {
        "mut "
    };
    let length = parameter.length.as_deref().unwrap_or("");
    if kind == "status" && is_array(parameter) {
        let _ = writeln!(
            text,
            "let {mutable}own_{name} = convert::statuses({name}, {length});"
        );
    } else if kind == "status" {
        let _ = writeln!(text, "let {mutable}own_{name} = convert::status({name});");
    } else if kind::is_special(kind) && is_array(parameter) {
        let _ = writeln!(
            text,
            "let {mutable}own_{name} = convert::integers({name}, {length}, abi::{kind}_from_neutral);"
        );
    } else if kind::is_special(kind) && gives_back(parameter) {
        let _ = writeln!(
            text,
            "let mut own_{name} = convert::integer({name}, abi::{kind}_from_neutral);"
        );
    }
}

fn argument(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let kind = parameter.kind.as_str();
    let out = parameter.direction != Direction::In;
    if kind == "status" || kind::is_special(kind) && is_array(parameter) {
        return if out {
            format!("own_{name}.place()")
        } else {
            format!("own_{name}.given()")
        };
    }
    if kind::is_special(kind) && parameter.length.is_none() {
        return if out {
            format!("own_{name}.place()")
        } else {
            format!("abi::{kind}_from_neutral({name})")
        };
    }
    match kind {
        "weights" if out => format!("abi::weights_from_neutral({name}).cast_mut()"),
        "weights" => format!("abi::weights_from_neutral({name})"),
        "displacement" => format!("abi::displacement_from_neutral({name})"),
        "int" | "count" | "offset" | "aint" if !kind::by_pointer(parameter) => name.clone(),
        kind if kind::handle(kind).is_some() && !kind::by_pointer(parameter) => {
            format!("convert::handle({name})")
        }
        kind if kind.starts_with("function:") => format!("convert::function({name})"),
        kind if kind::handle(kind).is_some() => format!("{name} as _"),
        // `int ranges[][3]` in C.
        "int" if name == "ranges" => format!("{name} as _"),
        "buffer" | "strings" | "tool" | "toolobject" | "pointer" => format!("{name} as _"),
        _ => name.clone(),
    }
}

fn after(text: &mut String, parameter: &Parameter) {
    let name = &parameter.name;
    let kind = parameter.kind.as_str();
    if kind == "status" {
        let _ = writeln!(text, "own_{name}.give({name});");
    } else {
        let _ = writeln!(text, "own_{name}.give({name}, abi::{kind}_to_neutral);");
    }
}

/// What rsmpi's bindings do not declare.
fn missing(text: &mut String, functions: &[&Function], abi: &Abi) {
    text.push_str(
        "\n/// Functions that the real MPI exports and its `mpi.h` does not declare. Handles are pointers, hence words.\n\
         mod missing {\nuse core::ffi::c_void;\n\nunsafe extern \"C\" {\n",
    );
    for function in functions.iter().filter(|it| abi.is_undeclared(&it.name)) {
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|parameter| {
                let plain = kind::neutral_type(parameter).replace("Word", "*mut c_void");
                format!("{}: {plain}", parameter.name)
            })
            .collect();
        let _ = writeln!(
            text,
            "pub fn {}({}) -> i32;",
            function.name,
            parameters.join(", ")
        );
    }
    text.push_str("}\n}\n");
}
