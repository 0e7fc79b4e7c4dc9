//! The stub's code for each of its parameters: before the call, in it and after it.

use std::fmt::Write;

use super::{failed, home, kind};
use crate::table::{Class, Direction, Function, Parameter};

/// Returns the number of elements of an array of handles.
fn count(function: &Function, length: &str) -> String {
    let communicator = home(function).map_or("", |parameter| parameter.name.as_str());
    match length {
        "peers" | "sources" | "destinations" => format!("steps::{length}({communicator})"),
        other => other.to_string(),
    }
}

/// Writes the preparations before the call.
pub fn before(text: &mut String, function: &Function, parameter: &Parameter) {
    let name = &parameter.name;
    let out = parameter.direction != Direction::In;
    match (parameter.kind.as_str(), out, &parameter.length) {
        ("group" | "info", false, None) => {
            // The lower half gets these objects only just before a call that uses them.
            let _ = writeln!(
                text,
                "if let Err(code) = steps::{}_below({name}) {{",
                parameter.kind
            );
            text.push_str(&failed(function));
            text.push_str("\n}\n");
        }
        ("status", _, None) => {
            let mutable = if out { "mut " } else { "" };
            let _ = writeln!(text, "let {mutable}new_{name} = steps::status({name});");
        }
        (kind, false, Some(length)) if kind::handle(kind).is_some() => {
            let mut count = count(function, length);
            if name == "sendtypes" && length == "peers" {
                count = format!("if abi::is_in_place(sendbuf) {{ 0 }} else {{ {count} }}");
            }
            let kind = kind::handle(kind).map_or("", |entry| entry.2);
            let _ = writeln!(
                text,
                "let new_{name} = steps::Words::new(HandleKind::{kind}, {name}, {count});"
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

/// Returns the neutral form of an argument.
pub fn argument(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let out = parameter.direction != Direction::In;
    match (parameter.kind.as_str(), out, parameter.length.is_some()) {
        ("status", false, false) => format!("steps::given({name}, &raw const new_{name})"),
        ("status", true, false) => format!("steps::place({name}, &mut new_{name})"),
        ("buffer", ..) => format!("abi::buffer({name})"),
        ("weights", false, _) => format!("abi::weights_to_neutral({name})"),
        ("weights", true, _) => format!("abi::weights_to_neutral({name}).cast_mut()"),
        ("displacement", ..) => format!("abi::displacement_to_neutral({name})"),
        ("toolobject", ..) => format!("steps::tool_object({name}, &mut new_{name})"),
        (kind, false, true) if kind::handle(kind).is_some() => {
            format!("new_{name}.refreshed()")
        }
        (kind, false, false) if kind::handle(kind).is_some() => {
            let kind = kind::handle(kind).map_or("", |entry| entry.2);
            format!("abi::word(HandleKind::{kind}, {name})")
        }
        (kind, true, false) if kind::handle(kind).is_some() || kind::is_special(kind) => {
            format!("steps::place({name}, &mut new_{name})")
        }
        (kind, false, false) if kind::is_special(kind) => format!("abi::{kind}_to_neutral({name})"),
        _ => name.clone(),
    }
}

/// Writes the code that passes results to the application.
pub fn after(text: &mut String, function: &Function, parameter: &Parameter) {
    let name = &parameter.name;
    if parameter.direction == Direction::In || parameter.length.is_some() {
        return;
    }
    match parameter.kind.as_str() {
        "status" => {
            let _ = writeln!(text, "steps::give_status({name}, &new_{name});");
        }
        "request" => {
            let give = match function.class {
                Class::File => "files::begun",
                _ => "steps::one_sided",
            };
            let _ = writeln!(text, "{give}({name}, new_{name});");
        }
        kind if kind::is_special(kind) => {
            let _ = writeln!(
                text,
                "steps::give({name}, abi::{kind}_from_neutral(new_{name}));"
            );
        }
        kind => {
            if let Some(entry) = kind::handle(kind) {
                let _ = writeln!(
                    text,
                    "if let Err(code) = steps::adopt(HandleKind::{}, {name}, new_{name}) {{\n{}\n}}",
                    entry.2,
                    failed(function)
                );
            }
        }
    }
}
