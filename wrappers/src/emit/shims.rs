//! The lower half's side of the dispatch table for Open MPI: `lower-half/src/mpi/generated/`, one file a class.

use std::fmt::Write;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::{Input, Output, header, kind};
use crate::table::{CLASSES, Direction, Function, Parameter};

/// Names that Open MPI's library exports and its `mpi.h` (hence rsmpi's bindings) leaves out.
const NOT_IN_MPI_H: [&str; 10] = [
    "MPI_Address",
    "MPI_Errhandler_create",
    "MPI_Errhandler_get",
    "MPI_Errhandler_set",
    "MPI_Type_extent",
    "MPI_Type_hindexed",
    "MPI_Type_hvector",
    "MPI_Type_lb",
    "MPI_Type_struct",
    "MPI_Type_ub",
];

/// Shims written by hand, in `lower-half/src/mpi/attributes.rs`.
const BY_HAND: [&str; 3] = ["MPI_Comm_get_attr", "MPI_Attr_get", "MPI_Win_get_attr"];

fn is_missing(function: &Function) -> bool {
    function.name.starts_with("MPIX_") || NOT_IN_MPI_H.contains(&function.name.as_str())
}

/// Writes the shims, the missing declarations and the filled table.
pub fn emit(input: &Input) -> Vec<Output> {
    let functions: Vec<&Function> = input
        .functions
        .iter()
        .filter(|f| kind::crosses(f))
        .collect();
    let mut outputs = Vec::new();
    let mut list = header(
        "The dispatch table filled with Open MPI: each function makes Open MPI's values out of neutral ones, calls\n\
         //! it, and makes what comes back neutral.",
        "functions",
    );
    let mut fields = String::new();
    for (class, name) in CLASSES {
        let here: Vec<&Function> = functions
            .iter()
            .copied()
            .filter(|f| f.class == class)
            .collect();
        if here.is_empty() {
            continue;
        }
        let module = name.replace('-', "_");
        let _ = writeln!(list, "mod {module};");
        let mut bodies = String::new();
        for function in here {
            let rust = function.rust_name();
            if BY_HAND.contains(&function.name.as_str()) {
                let _ = writeln!(fields, "{rust}: attributes::{rust},");
                continue;
            }
            shim(&mut bodies, function);
            let _ = writeln!(fields, "{rust}: {module}::{rust},");
        }
        let mut text = header(&format!("Shims of the class `{name}`."), "functions");
        text.push_str(&imports(&bodies));
        text.push_str(&bodies);
        outputs.push(Output {
            path: format!("lower-half/src/mpi/generated/{module}.rs"),
            text,
        });
    }
    list.push_str("mod direct;\nmod missing;\npub mod symbols;\n\nuse stillpoint_wrappers::dispatch::Dispatch;\nuse stillpoint_wrappers::extra::Extra;\n\nuse super::attributes;\n\n");
    list.push_str("/// The table, with what is not MPI's own.\npub const fn dispatch(extra: Extra) -> Dispatch {\nDispatch {\n");
    list.push_str(&fields);
    list.push_str("extra,\ndirect: direct::direct(),\n}\n}\n");
    outputs.push(Output {
        path: "lower-half/src/mpi/generated.rs".into(),
        text: list,
    });
    outputs.push(missing(&functions));
    outputs
}

fn imports(bodies: &str) -> String {
    let mut text = String::new();
    let uses = |word: &str| {
        bodies
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|found| found == word)
    };
    let pick = |words: &[&'static str]| -> Vec<&'static str> {
        words.iter().copied().filter(|word| uses(word)).collect()
    };
    let mut import = |path: &str, words: Vec<&str>| {
        if !words.is_empty() {
            let _ = writeln!(text, "use {path}::{{{}}};", words.join(", "));
        }
    };
    import("core::ffi", pick(&["c_char", "c_void"]));
    import("stillpoint_wrappers::neutral", pick(&["Status", "Word"]));
    import("stillpoint_wrappers", pick(&["openmpi"]));
    import("super", pick(&["missing"]));
    import("crate::mpi", pick(&["convert"]));
    if uses("ffi") {
        text.push_str("use mpi_sys as ffi;\n");
    }
    text
}

fn shim(text: &mut String, function: &Function) {
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
    let home = if is_missing(function) {
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
        text.push_str("openmpi::error_to_neutral(code)\n}\n}\n");
    } else {
        let _ = writeln!(text, "openmpi::error_to_neutral({call})\n}}\n}}");
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
            "let {mutable}own_{name} = convert::integers({name}, {length}, openmpi::{kind}_from_neutral);"
        );
    } else if kind::is_special(kind) && gives_back(parameter) {
        let _ = writeln!(
            text,
            "let mut own_{name} = convert::integer({name}, openmpi::{kind}_from_neutral);"
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
            format!("openmpi::{kind}_from_neutral({name})")
        };
    }
    match kind {
        "weights" if out => format!("openmpi::weights_from_neutral({name}).cast_mut()"),
        "weights" => format!("openmpi::weights_from_neutral({name})"),
        "displacement" => format!("openmpi::displacement_from_neutral({name})"),
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
        let _ = writeln!(text, "own_{name}.give({name}, openmpi::{kind}_to_neutral);");
    }
}

/// `missing.rs`: what rsmpi's bindings do not declare.
fn missing(functions: &[&Function]) -> Output {
    let mut text = header(
        "Functions that Open MPI exports and its `mpi.h` does not declare: MPI-1's removed names, and persistent\n\
         //! collective operations. Handles are pointers, hence words.",
        "functions",
    );
    text.push_str("use core::ffi::c_void;\n\nunsafe extern \"C\" {\n");
    for function in functions.iter().filter(|function| is_missing(function)) {
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
    text.push_str("}\n");
    Output {
        path: "lower-half/src/mpi/generated/missing.rs".into(),
        text,
    }
}
