//! The stubs of the upper half: `upper-half/src/generated/`, one file a class.

use std::fmt::Write;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::{Input, Output, direct, header, kind};
use crate::table::{CLASSES, Class, Direction, Form, Function, Parameter};

mod imports;

use imports::imports;

/// Words that a stub uses for itself.
const RESERVED: [&str; 5] = ["lower", "code", "home", "_inside", "word"];

/// Writes the stubs and the module that lists their files.
pub fn emit(input: &Input) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut modules = header(
        "The exported functions: `MPI_X` and `PMPI_X` for every function of the table that an MPI exports.\n//!\n\
         //! Both names jump to one stub, so a tool's own `MPI_X` may call `PMPI_X`. A stub stays inside MPI from its\n\
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
            path: format!("upper-half/src/generated/{module}.rs"),
            text,
        });
    }
    outputs.push(Output {
        path: "upper-half/src/generated.rs".into(),
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
    let _ = writeln!(
        text,
        "export!({}, P{} => {name});",
        function.name, function.name
    );
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
    let arguments: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| argument(parameter, ""))
        .collect();
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

/// How many elements an array of handles has.
fn count(function: &Function, length: &str) -> String {
    let communicator = home(function).map_or("", |parameter| parameter.name.as_str());
    match length {
        "peers" | "sources" | "destinations" => format!("pass::{length}({communicator})"),
        other => other.to_string(),
    }
}

/// What has to stand ready before the call.
fn before(text: &mut String, function: &Function, parameter: &Parameter) {
    let name = &parameter.name;
    let out = parameter.direction != Direction::In;
    match (parameter.kind.as_str(), out, &parameter.length) {
        ("group" | "info", false, None) => {
            // The lower half gets these objects only when it is about to be asked for something with them.
            let _ = writeln!(
                text,
                "if let Err(code) = pass::{}_below({name}) {{",
                parameter.kind
            );
            text.push_str(&failed(function));
            text.push_str("}\n");
        }
        ("status", _, None) => {
            let mutable = if out { "mut " } else { "" };
            let _ = writeln!(text, "let {mutable}new_{name} = pass::status({name});");
        }
        (kind, false, Some(length)) if kind::handle(kind).is_some() => {
            let mut count = count(function, length);
            if name == "sendtypes" && length == "peers" {
                count = format!("if abi::is_in_place(sendbuf) {{ 0 }} else {{ {count} }}");
            }
            let kind = kind::handle(kind).map_or("", |entry| entry.2);
            let _ = writeln!(
                text,
                "let new_{name} = pass::Words::new(HandleKind::{kind}, {name}, {count});"
            );
        }
        (kind, true, None) if kind::handle(kind).is_some() => {
            let _ = writeln!(text, "let mut new_{name} = 0;");
        }
        (kind, true, None) if kind::is_special(kind) => {
            let _ = writeln!(text, "let mut new_{name} = 0;");
        }
        ("toolobject", ..) => {
            let _ = writeln!(text, "let mut new_{name} = 0;");
        }
        (kind, _, Some(length))
            if (kind::is_special(kind) || kind == "status") && length != "*" =>
        {
            panic!("{}: an array of {kind} in a generated stub", function.name);
        }
        _ => {}
    }
}

/// The neutral form of an argument.
fn argument(parameter: &Parameter, reference: &str) -> String {
    let name = &parameter.name;
    let out = parameter.direction != Direction::In;
    match (parameter.kind.as_str(), out, parameter.length.is_some()) {
        ("status", false, false) => format!("pass::given({name}, &raw const new_{name})"),
        ("status", true, false) => format!("pass::place({name}, &mut new_{name})"),
        ("buffer", ..) => format!("abi::buffer({name})"),
        ("weights", false, _) => format!("abi::weights_to_neutral({name})"),
        ("weights", true, _) => format!("abi::weights_to_neutral({name}).cast_mut()"),
        ("displacement", ..) => format!("abi::displacement_to_neutral({name})"),
        ("toolobject", ..) => format!("pass::tool_object({name}, &mut new_{name})"),
        (kind, false, true) if kind::handle(kind).is_some() => {
            format!("{reference}new_{name}.refreshed()")
        }
        (kind, false, false) if kind::handle(kind).is_some() => {
            let kind = kind::handle(kind).map_or("", |entry| entry.2);
            format!("abi::word(HandleKind::{kind}, {name})")
        }
        (kind, true, false) if kind::handle(kind).is_some() || kind::is_special(kind) => {
            format!("pass::place({name}, &mut new_{name})")
        }
        (kind, false, false) if kind::is_special(kind) => format!("abi::{kind}_to_neutral({name})"),
        _ => name.clone(),
    }
}

/// What the application is given.
fn after(text: &mut String, function: &Function, parameter: &Parameter) {
    let name = &parameter.name;
    if parameter.direction == Direction::In || parameter.length.is_some() {
        return;
    }
    match parameter.kind.as_str() {
        "status" => {
            let _ = writeln!(text, "pass::give_status({name}, &new_{name});");
        }
        "request" => {
            let _ = writeln!(text, "pass::foreign({name}, new_{name});");
        }
        kind if kind::is_special(kind) => {
            let _ = writeln!(
                text,
                "pass::give({name}, abi::{kind}_from_neutral(new_{name}));"
            );
        }
        kind @ ("window" | "file") => {
            let _ = writeln!(text, "pass::opened_{kind}({name}, new_{name}, comm);");
        }
        kind => {
            if let Some(entry) = kind::handle(kind) {
                let _ = writeln!(
                    text,
                    "if let Err(code) = pass::adopt(HandleKind::{}, {name}, new_{name}) {{ {} }}",
                    entry.2,
                    failed(function)
                );
            }
        }
    }
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

/// A nonblocking or persistent collective operation: what begins or makes it is kept, to be run again after a
/// restart.
fn repeated(text: &mut String, function: &Function) {
    text.push_str("let _inside = crossing::enter_as(Place::Collective);\n");
    let mut objects = Vec::new();
    let mut arrays = Vec::new();
    for parameter in &function.parameters {
        let is_handle = kind::handle(&parameter.kind).is_some();
        if parameter.kind == "request" {
            continue;
        }
        before(text, function, parameter);
        if is_handle && parameter.length.is_some() {
            arrays.push(format!("new_{}.objects()", parameter.name));
        } else if is_handle {
            objects.push(parameter.name.clone());
        }
    }
    let clocked = home(function).map_or("", |parameter| parameter.name.as_str());
    let repeatable = repeatable(function);
    let held = if arrays.is_empty() {
        format!("&[{}]", objects.join(", "))
    } else {
        format!(
            "&[&[{}][..], {}].concat()",
            objects.join(", "),
            arrays.join(", ")
        )
    };
    let _ = writeln!(
        text,
        "let code = pass::{}({clocked}, request, {repeatable}, {held}, move |lower, word| {});",
        if function.form == Form::Started {
            "started"
        } else {
            "persistent"
        },
        again(function),
    );
    let _ = writeln!(
        text,
        "if code != 0 {{ return errhandler::raise({clocked}, code, c\"{}\"); }}\n0",
        function.name
    );
}

/// The call that begins an operation in the lower half, now or again.
fn again(function: &Function) -> String {
    let arguments: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| match parameter.kind.as_str() {
            "request" => "word".to_string(),
            _ => argument(parameter, ""),
        })
        .collect();
    format!("(lower.{})({})", function.rust_name(), arguments.join(", "))
}

/// The expression for whether MPI leaves the operation's input as it is. In gathers and scatters the part that is in place is input
/// or result, never one after the other.
fn repeatable(function: &Function) -> String {
    let name = function.name.to_lowercase();
    let changes_input = ["reduce", "scan", "alltoall"]
        .iter()
        .any(|kind| name.contains(kind));
    let in_place: Vec<String> = function
        .parameters
        .iter()
        .filter(|p| p.name == "sendbuf" || p.name == "recvbuf")
        .filter(|_| changes_input)
        .map(|p| format!("!abi::is_in_place({})", p.name))
        .collect();
    if in_place.is_empty() {
        "true".to_string()
    } else {
        in_place.join(" && ")
    }
}
