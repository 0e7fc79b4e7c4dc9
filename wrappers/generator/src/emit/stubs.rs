//! The stubs of the upper half (`upper-half/src/stubs/generated.rs`), a module for each class.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, direct, kind, sentence, served};
use crate::abi::{Abi, Named};
use crate::table::{CLASSES, Class, Direction, Form, Function, Parameter};

mod arguments;
mod collective;
mod devices;
mod files;
mod large;
mod repeated;
mod roots;
mod short;

use arguments::{after, argument, before};
use collective::{directly, in_assembly, with_numbers};
use files::{in_sequence, split_begin, split_end};
use repeated::{input, repeated};

/// Words that a stub uses itself.
const RESERVED: [&str; 5] = ["lower", "code", "home", "_inside", "word"];

/// Writes the stubs.
pub fn emit(input: &Input) -> String {
    let mut text = String::new();
    let served = served::functions(input);
    for (class, name) in CLASSES {
        let functions: Vec<&Function> = served.iter().filter(|it| it.class == class).collect();
        if functions.is_empty() {
            continue;
        }
        let mut stubs = String::new();
        for function in &functions {
            if roots::has(function) {
                let mut inner = String::new();
                stub(&mut inner, function, &input.abi);
                roots::given(&mut stubs, function, &inner);
            } else {
                stub(&mut stubs, function, &input.abi);
            }
            if let Some(twin) = served::twin(input, function).filter(|it| !it.written) {
                large::twin(&mut stubs, function, twin);
            }
        }
        let (module, imports) = (name.replace('-', "_"), imports(&stubs, &functions));
        let _ = writeln!(text, "mod {module} {{\n{imports}{stubs}}}\n");
    }
    refused(&mut text, &input.abi);
    also(&mut text, &input.abi);
    text
}

/// Writes functions of the table under their names in a later release.
fn also(text: &mut String, abi: &Abi) {
    if abi.also.is_empty() {
        return;
    }
    text.push_str("mod also {\nuse crate::ground::export::export;\n\nunsafe extern \"C\" {\n");
    for Named { value, .. } in &abi.also {
        let _ = writeln!(text, "safe fn {value}();");
    }
    text.push_str("}\n");
    for Named { name, value, .. } in &abi.also {
        let _ = writeln!(
            text,
            "export!({name} => {value});\nexport!(P{name} => {value});"
        );
    }
    text.push_str("}\n");
}

/// Writes functions that the ABI has but the upper half does not carry: a call reports that. The arguments are never read.
fn refused(text: &mut String, abi: &Abi) {
    if abi.refused.is_empty() {
        return;
    }
    text.push_str("mod refused {\nuse crate::ground::export::export;\nuse crate::stubs::uncarried::{RefusalReason, refuse};\n");
    for Named { name, value, .. } in &abi.refused {
        let own = name.to_lowercase();
        let _ = writeln!(
            text,
            "\n#[unsafe(export_name = \"{name}\")]\nunsafe extern \"C\" fn {own}() -> isize {{\n\
             // SAFETY: a stub, on a thread of the application's.\n\
             unsafe {{ refuse(c\"{name}\", RefusalReason::{}) }}\n}}\nexport!(P{name} => {own});",
            sentence(value),
        );
    }
    text.push_str("}\n");
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
    let mut types: Vec<&str> = types.iter().map(String::as_str).collect();
    types.extend(["Count", "Handle", "ListOf", "PlaceOf"]);
    types.sort_unstable();
    types.dedup();
    let mut imports = Imports::of(stubs);
    imports.from("core::ffi", &["c_char", "c_int", "c_void"]);
    imports.line("Direct", "\nuse stillpoint_wrappers::direct::Direct;");
    imports.line(
        "HandleKind",
        "\nuse stillpoint_wrappers::gate::HandleKind;\n",
    );
    imports.from("crate::ground::abi", &types);
    imports.from("crate::ground::crossing", &["StayKind"]);
    imports.from("crate::ground::export", &["export"]);
    imports.from("crate::ground::object", &["Object"]);
    imports.modules("crate::ground", &["abi", "arch", "crossing", "hindrances"]);
    imports.modules("crate::objects", &["errhandler"]);
    imports.modules("crate::operations", &["ahead", "devices", "direct"]);
    imports.modules("crate::operations::clock", &["kept"]);
    imports.from("crate::operations::clock::kept", &["Input", "Keeps"]);
    imports.from("crate::operations::clock::log", &["Note"]);
    imports.from("stillpoint_clock::absent", &["Kind"]);
    imports.from("crate::stubs::short", &["short"]);
    imports.modules("crate::stubs", &["by_hand", "files", "large", "steps"]);
    imports.modules("crate", &["windows"]);
    imports.text()
}

fn stub(text: &mut String, function: &Function, abi: &Abi) {
    // Handles are as wide as an address, and are addresses unless they are small numbers.
    let wide = kind::are_wide(abi);
    let name = function.rust_name();
    for parameter in &function.parameters {
        assert!(
            !RESERVED.contains(&parameter.name.as_str()),
            "{}",
            function.name
        );
    }
    let long = format!("{name}_converted");
    match (direct::is_collective(function), function.form) {
        (true, Form::Blocking) if wide => {
            in_assembly(text, function, &long, true);
            beginning(text, function, kind::application_type, &cold(&long));
        }
        (true, Form::Blocking) => {
            with_numbers(text, function, &long);
            in_assembly(text, function, &long, false);
            beginning(text, function, kind::inner_type, &cold(&long));
        }
        (true, Form::Started) => {
            directly(text, function, &long);
            beginning(text, function, kind::inner_type, &cold(&long));
        }
        (false, Form::Written) if short::is(function, abi) => {
            short::stub(text, function, &long);
            beginning(text, function, kind::application_type, &cold(&long));
        }
        _ => exported(text, function),
    }
    devices::beginning(text, function);
    match function.form {
        Form::Written => {
            let call = format!("by_hand::{name}({})", names(function));
            let _ = match kind::handle(&function.returns) {
                Some(_) => writeln!(text, "Handle::of({call})"),
                None => writeln!(text, "{call}"),
            };
        }
        Form::Persistent | Form::Started => repeated(text, function),
        _ => crossing(text, function),
    }
    text.push_str("}\n}\n");
    let (again, types): (&str, fn(&Parameter) -> String) =
        match (direct::is_collective(function), function.form) {
            (true, Form::Blocking) if wide => (&long, kind::application_type),
            (true, Form::Blocking | Form::Started) => (&long, kind::inner_type),
            _ => (&name, kind::application_type),
        };
    devices::function(text, function, again, types);
    let _ = writeln!(text, "export!(P{} => {name});", function.called);
}

/// Returns the names of a function's parameters.
fn names(function: &Function) -> String {
    let names = function.parameters.iter().map(|it| it.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the signature, in which each parameter has the type that `kind` gives it.
fn signature(function: &Function, kind: fn(&Parameter) -> String) -> String {
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, kind(parameter)))
        .collect();
    format!(
        "({}) -> {}",
        parameters.join(", "),
        kind::return_type(function)
    )
}

/// Writes the beginning of a function: handles become objects, if the function receives handles.
fn beginning(text: &mut String, function: &Function, types: fn(&Parameter) -> String, head: &str) {
    let signature = signature(function, types);
    let _ = write!(
        text,
        "\n{head}{signature} {{\n\
         // SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {{\n"
    );
    for parameter in &function.parameters {
        if let Some(object) = kind::to_objects(parameter)
            && types(parameter) != kind::inner_type(parameter)
        {
            let _ = writeln!(text, "let {} = {object};", parameter.name);
        }
    }
}

/// Writes the beginning of the function that the application calls.
fn exported(text: &mut String, function: &Function) {
    let head = format!(
        "{}unsafe extern \"C\" fn {}",
        export_name(function),
        function.rust_name()
    );
    beginning(text, function, kind::application_type, &head);
}

fn export_name(function: &Function) -> String {
    format!("#[unsafe(export_name = \"{}\")]\n", function.called)
}

/// Returns the head of a function that is seldom called.
fn cold(name: &str) -> String {
    format!("#[cold]\n#[inline(never)]\nunsafe extern \"C\" fn {name}")
}

/// Returns the kind of an operation from which members may return before others have come, and which can be carried out for these in advance
/// (`stillpoint_clock::absent`).
fn noted(function: &Function) -> Option<&'static str> {
    ["Bcast", "Scatter", "Gather", "Gatherv"]
        .into_iter()
        .find(|kind| function.name == format!("MPI_{kind}"))
}

/// Returns the parameter whose object has the clock and the error handler.
fn home(function: &Function) -> Option<&Parameter> {
    ["file", "window", "communicator"].iter().find_map(|kind| {
        let is_home = |p: &&Parameter| p.kind == *kind && p.direction == Direction::In;
        function.parameters.iter().find(is_home)
    })
}

/// Returns the expression for the object on which errors are raised.
fn raised_on(function: &Function) -> String {
    match home(function) {
        Some(parameter) => parameter.name.clone(),
        None if function.class == Class::File => "steps::null_file()".to_string(),
        None => "core::ptr::null_mut()".to_string(),
    }
}

/// Whether a near thread calls the function without a switch of FS: local functions on messages, which programs call for each message.
fn is_near(function: &Function) -> bool {
    let of_messages = |p: &Parameter| p.kind == "buffer" || p.kind == "status";
    function.class == Class::Local && function.parameters.iter().any(of_messages)
}

fn crossing(text: &mut String, function: &Function) {
    let collective = function.form == Form::Blocking;
    text.push_str(if collective {
        "let _inside = crossing::enter_as(StayKind::Collective);\n"
    } else {
        "let _inside = crossing::enter();\n"
    });
    if function.class == Class::OneSided
        && function
            .parameters
            .iter()
            .any(|it| it.name == "target_rank")
    {
        let _ = writeln!(
            text,
            "if let Err(code) = windows::access(win) {{\n{}\n}}",
            failed(function)
        );
    }
    in_sequence(text, function);
    for parameter in &function.parameters {
        before(text, function, parameter);
    }
    let arguments: Vec<String> = function.parameters.iter().map(argument).collect();
    let call = format!("(lower.{})({})", function.rust_name(), arguments.join(", "));
    let clocked = home(function).map(|parameter| parameter.name.clone());
    if noted(function).is_some() {
        let name = function.rust_name();
        let _ = writeln!(
            text,
            "if let Some(code) = ahead::{name}({}) {{\nif code != 0 {{\n{}\n}}\nreturn 0;\n}}",
            names(function),
            failed(function)
        );
    }
    match (function.form, clocked) {
        _ if split_end(function) => {
            let _ = writeln!(
                text,
                "let code = files::split_end(fh, c\"{}\", &mut new_status, |lower, new_status| (lower.{})(\
                 abi::word(HandleKind::File, fh), abi::buffer(buf), new_status));",
                function.called,
                function.rust_name()
            );
        }
        (Form::Blocking, Some(clocked)) => {
            // Copies of the arguments can stay in registers; but a place that it writes to must not be a copy.
            let own = if call.contains("&mut ") { "" } else { "move " };
            let input = input(function);
            let name = &function.called;
            let _ = match noted(function) {
                Some(kind) => {
                    let given = |field: &str, index: usize| match &function.parameters[index].name {
                        name if name == field => field.to_string(),
                        name => format!("{field}: {name}"),
                    };
                    let (count, datatype) = (given("count", 1), given("datatype", 2));
                    let root = given("root", function.parameters.len() - 2);
                    writeln!(
                        text,
                        "let note = Note {{ kind: Kind::{kind}, {count}, {root}, {datatype} }};\n\
                         let code = steps::noted({clocked}, c\"{name}\", {input}, &note, {own}|lower| {call});"
                    )
                }
                None => writeln!(
                    text,
                    "let code = steps::clocked({clocked}, c\"{name}\", {input}, {own}|lower| {call});"
                ),
            };
        }
        _ => {
            let cross = if is_near(function) {
                "cross_near"
            } else {
                "cross"
            };
            let _ = writeln!(text, "let code = crossing::{cross}(|lower| {call});");
        }
    }
    let _ = writeln!(text, "if code != 0 {{\n{}\n}}", failed(function));
    for parameter in &function.parameters {
        after(text, function, parameter);
    }
    lasting(text, function);
    if let Some(begun) = split_begin(function) {
        let _ = writeln!(
            text,
            "files::split_begun(fh, buf, |lower, word, buf, status| (lower.{begun}_end)(word, buf, status));"
        );
    }
    text.push_str("0\n");
}

/// Returns the stub's code for a neutral error.
fn failed(function: &Function) -> String {
    if function.class == Class::Tool {
        return "return abi::error_from_neutral(code);".to_string();
    }
    format!(
        "return errhandler::raise({}, code, c\"{}\");",
        raised_on(function),
        function.called
    )
}

/// Notes state that no image can hold, as long as it exists.
fn lasting(text: &mut String, function: &Function) {
    let note = match function.name.as_str() {
        "MPI_Open_port" | "MPI_Publish_name" => "kept(hindrances::Kept::Port)",
        "MPI_Close_port" | "MPI_Unpublish_name" => "given_up(hindrances::Kept::Port)",
        "MPI_T_init_thread"
        | "MPI_T_cvar_handle_alloc"
        | "MPI_T_pvar_handle_alloc"
        | "MPI_T_pvar_session_create" => "kept(hindrances::Kept::ToolHandle)",
        "MPI_T_finalize"
        | "MPI_T_cvar_handle_free"
        | "MPI_T_pvar_handle_free"
        | "MPI_T_pvar_session_free" => "given_up(hindrances::Kept::ToolHandle)",
        _ => return,
    };
    let _ = writeln!(text, "hindrances::{note};");
}
