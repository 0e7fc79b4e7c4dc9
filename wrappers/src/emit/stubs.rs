//! The stubs of the upper half: `upper-half/src/stubs/generated/`, one file a class.

use std::fmt::Write;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::{Input, Output, direct, header, kind};
use crate::table::{CLASSES, Class, Direction, Form, Function, Parameter};

mod arguments;
mod imports;
mod repeated;

use arguments::{after, argument, before};
use imports::imports;
use repeated::{again, repeatable, repeated};

/// Words that a stub uses for itself.
const RESERVED: [&str; 5] = ["lower", "code", "home", "_inside", "word"];

/// Writes the stubs and the module that lists their files.
pub fn emit(input: &Input) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut modules = header(
        "The exported functions: `MPI_X` and `PMPI_X` for every function of the table that an MPI exports.\n//!\n\
         //! The first name is the stub's own, the second a jump to it ([`crate::ground::export`]). A stub stays inside MPI from its\n\
         //! first line to its last; handles are read only there, and only once the call is let through, because a\n\
         //! restart gives them new words. Nothing allocates but what keeps an array of handles, nothing panics.",
        "functions",
    );
    for (class, name) in CLASSES {
        let functions: Vec<&Function> = input
            .functions
            .iter()
            .filter(|function| function.class == class && function.form != Form::Absent)
            .collect();
        if functions.is_empty() {
            continue;
        }
        let module = name.replace('-', "_");
        let _ = writeln!(modules, "mod {module};");
        let mut text = header(&format!("Stubs of the class `{name}`."), "functions");
        text.push_str(&imports(&functions));
        for function in functions {
            stub(&mut text, function);
        }
        outputs.push(Output {
            path: format!("upper-half/src/stubs/generated/{module}.rs"),
            text,
        });
    }
    outputs.push(Output {
        path: "upper-half/src/stubs/generated.rs".into(),
        text: modules,
    });
    outputs
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
            let _ = writeln!(text, "calls::{name}({})", arguments.join(", "));
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
        _ if function.name == "MPI_File_open" => "pass::null_file()".to_string(),
        Some(parameter) => parameter.name.clone(),
        None if function.class == Class::File => "pass::null_file()".to_string(),
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
                "let code = pass::clocked({clocked}, {own}|lower| {call});"
            );
        }
        _ => {
            let _ = writeln!(text, "let code = crossing::cross(|lower| {call});");
        }
    }
    let _ = writeln!(text, "if code != 0 {{ {} }}", failed(function));
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
        | "MPI_Win_create_dynamic" => "alive(refuse::Reason::Window)",
        "MPI_File_open" => "alive(refuse::Reason::File)",
        "MPI_Open_port" | "MPI_Publish_name" => "alive(refuse::Reason::DynamicProcess)",
        "MPI_Close_port" | "MPI_Unpublish_name" => "gone(refuse::Reason::DynamicProcess)",
        "MPI_T_init_thread"
        | "MPI_T_cvar_handle_alloc"
        | "MPI_T_pvar_handle_alloc"
        | "MPI_T_pvar_session_create" => "alive(refuse::Reason::ToolHandle)",
        "MPI_T_finalize"
        | "MPI_T_cvar_handle_free"
        | "MPI_T_pvar_handle_free"
        | "MPI_T_pvar_session_free" => "gone(refuse::Reason::ToolHandle)",
        _ => return,
    };
    let _ = writeln!(text, "refuse::{note};");
}
