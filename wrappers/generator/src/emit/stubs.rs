//! The stubs of the upper half (`upper-half/src/stubs/generated.rs`), a module for each class.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, direct, kind};
use crate::table::{CLASSES, Class, Direction, Form, Function, Parameter};

mod arguments;
mod repeated;

use arguments::{after, argument, before};
use repeated::{again, repeatable, repeated};

/// Words that a stub uses for itself.
const RESERVED: [&str; 5] = ["lower", "code", "home", "_inside", "word"];

/// Writes the stubs.
pub fn emit(input: &Input) -> String {
    let mut text = String::new();
    for (class, name) in CLASSES {
        let functions: Vec<&Function> = input
            .functions
            .iter()
            .filter(|function| function.class == class && function.form != Form::Absent)
            .collect();
        if functions.is_empty() {
            continue;
        }
        let mut stubs = String::new();
        for function in &functions {
            stub(&mut stubs, function);
        }
        let (module, imports) = (name.replace('-', "_"), imports(&stubs, &functions));
        let _ = writeln!(text, "mod {module} {{\n{imports}{stubs}}}\n");
    }
    text
}

fn imports(stubs: &str, functions: &[&Function]) -> String {
    let mut types: Vec<String> = functions
        .iter()
        .flat_map(|function| {
            let parameters = function.parameters.iter().map(kind::application_type);
            parameters.chain([kind::return_type(function)])
        })
        .map(|name| name.rsplit([' ', '*']).next().unwrap_or("").to_string())
        .filter(|name| name.chars().next().is_some_and(char::is_uppercase))
        .collect();
    types.sort();
    types.dedup();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let mut imports = Imports::of(stubs);
    imports.from("core::ffi", &["c_char", "c_int", "c_void"]);
    imports.line(
        "HandleKind",
        "\nuse stillpoint_wrappers::gate::HandleKind;\n",
    );
    imports.from("crate::ground::abi", &types);
    imports.from("crate::ground::crossing", &["Place"]);
    imports.from("crate::ground::export", &["export"]);
    imports.modules("crate::ground", &["abi", "crossing", "hindrances"]);
    imports.modules("crate::objects", &["errhandler"]);
    imports.modules("crate::operations", &["direct"]);
    imports.modules("crate::stubs", &["by_hand", "steps"]);
    imports.text()
}

fn stub(text: &mut String, function: &Function) {
    let name = function.rust_name();
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| {
            assert!(
                !RESERVED.contains(&parameter.name.as_str()),
                "{}",
                function.name
            );
            format!("{}: {}", parameter.name, kind::application_type(parameter))
        })
        .collect();
    let signature = format!(
        "({}) -> {}",
        parameters.join(", "),
        kind::return_type(function)
    );
    let mut body = name.clone();
    if direct::is_collective(function) {
        body.push_str("_converted");
        directly(text, function, &signature, &body);
    }
    if body != name {
        text.push_str("\n#[cold]\n#[inline(never)]");
    }
    if body == name {
        named(text, function);
    }
    let _ = writeln!(text, "\nunsafe extern \"C\" fn {body}{signature} {{");
    text.push_str("// SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {\n");
    match function.form {
        Form::Written => {
            let arguments: Vec<&str> = function
                .parameters
                .iter()
                .map(|p| p.name.as_str())
                .collect();
            let _ = writeln!(text, "by_hand::{name}({})", arguments.join(", "));
        }
        Form::Persistent | Form::Started => repeated(text, function),
        _ => crossing(text, function),
    }
    text.push_str("}\n}\n");
    let _ = writeln!(text, "export!(P{} => {name});", function.name);
}

/// The name under which applications call the stub that follows.
fn named(text: &mut String, function: &Function) {
    let _ = write!(text, "\n#[unsafe(export_name = \"{}\")]", function.name);
}

/// The short way of a collective operation; `long` is the function that goes every way.
fn directly(text: &mut String, function: &Function, signature: &str, long: &str) {
    let name = function.rust_name();
    let home = home(function).map_or("", |parameter| parameter.name.as_str());
    let started = function.form == Form::Started;
    let mut handles = Vec::new();
    let mut arguments = Vec::new();
    let mut names = Vec::new();
    for parameter in &function.parameters {
        names.push(parameter.name.as_str());
        if parameter.kind == "request" {
            arguments.push("begun.word()".to_string());
        } else if kind::handle(&parameter.kind).is_none() {
            arguments.push(parameter.name.clone());
        } else {
            arguments.push(format!("(*{}).lower", parameter.name));
            if parameter.name != home {
                handles.push(parameter.name.as_str());
            }
        }
    }
    let handles = handles.join(", ");
    let arguments = arguments.join(", ");
    named(text, function);
    let _ = writeln!(
        text,
        "\nunsafe extern \"C\" fn {name}{signature} {{\n\
         // SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {{"
    );
    if started {
        let _ = writeln!(
            text,
            "if direct::open() && direct::predefined([{handles}]){} \
             && let Some(begun) = direct::initiate({home}, request, move |lower, word| {}) {{\n\
             let code = (direct::table().{name})({arguments});\n\
             return begun.end(code, c\"{}\");\n}}",
            match repeatable(function).as_str() {
                "true" => String::new(),
                condition => format!(" && {condition}"),
            },
            again(function),
            function.name,
        );
    } else {
        let _ = writeln!(
            text,
            "if direct::open() && direct::objects([{handles}]) && let Some(stay) = direct::begin({home}) {{\n\
             let code = (direct::table().{name})({arguments});\n\
             return stay.end({home}, code, c\"{}\");\n}}",
            function.name,
        );
    }
    let _ = writeln!(text, "{long}({})\n}}\n}}", names.join(", "));
}

/// The parameter whose object has the clock and the error handler.
fn home(function: &Function) -> Option<&Parameter> {
    ["file", "window", "communicator"].iter().find_map(|kind| {
        let is_home = |p: &&Parameter| p.kind == *kind && p.direction == Direction::In;
        function.parameters.iter().find(is_home)
    })
}

/// The expression for the object on which errors are raised.
fn raised_on(function: &Function) -> String {
    match home(function) {
        _ if function.name == "MPI_File_open" => "steps::null_file()".to_string(),
        Some(parameter) => parameter.name.clone(),
        None if function.class == Class::File => "steps::null_file()".to_string(),
        None => "core::ptr::null_mut()".to_string(),
    }
}

fn crossing(text: &mut String, function: &Function) {
    let collective = function.form == Form::Blocking;
    text.push_str(if collective {
        "let _inside = crossing::enter_as(Place::Collective);\n"
    } else {
        "let _inside = crossing::enter();\n"
    });
    for parameter in &function.parameters {
        before(text, function, parameter);
    }
    let arguments: Vec<String> = function.parameters.iter().map(argument).collect();
    let call = format!("(lower.{})({})", function.rust_name(), arguments.join(", "));
    let clocked = home(function).map(|parameter| parameter.name.clone());
    match (function.form, clocked) {
        (Form::Blocking, Some(clocked)) => {
            // Its own copies of the arguments let them stay in registers; but what it writes to must not be a copy.
            let own = if call.contains("&mut ") { "" } else { "move " };
            let _ = writeln!(
                text,
                "let code = steps::clocked({clocked}, {own}|lower| {call});"
            );
        }
        _ => {
            let _ = writeln!(text, "let code = crossing::cross(|lower| {call});");
        }
    }
    let _ = writeln!(text, "if code != 0 {{\n{}\n}}", failed(function));
    for parameter in &function.parameters {
        after(text, function, parameter);
    }
    lasting(text, function);
    text.push_str("0\n");
}

/// What a stub does with a neutral error.
fn failed(function: &Function) -> String {
    if function.class == Class::Tool {
        return "return abi::error_from_neutral(code);".to_string();
    }
    format!(
        "return errhandler::raise({}, code, c\"{}\");",
        raised_on(function),
        function.name
    )
}

/// Notes what no image can hold, as long as it lives.
fn lasting(text: &mut String, function: &Function) {
    let note = match function.name.as_str() {
        "MPI_Win_create"
        | "MPI_Win_allocate"
        | "MPI_Win_allocate_shared"
        | "MPI_Win_create_dynamic" => "alive(hindrances::Reason::Window)",
        "MPI_File_open" => "alive(hindrances::Reason::File)",
        "MPI_Open_port" | "MPI_Publish_name" => "alive(hindrances::Reason::DynamicProcess)",
        "MPI_Close_port" | "MPI_Unpublish_name" => "gone(hindrances::Reason::DynamicProcess)",
        "MPI_T_init_thread"
        | "MPI_T_cvar_handle_alloc"
        | "MPI_T_pvar_handle_alloc"
        | "MPI_T_pvar_session_create" => "alive(hindrances::Reason::ToolHandle)",
        "MPI_T_finalize"
        | "MPI_T_cvar_handle_free"
        | "MPI_T_pvar_handle_free"
        | "MPI_T_pvar_session_free" => "gone(hindrances::Reason::ToolHandle)",
        _ => return,
    };
    let _ = writeln!(text, "hindrances::{note};");
}
