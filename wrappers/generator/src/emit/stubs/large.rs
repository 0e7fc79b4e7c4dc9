//! Twins with large counts: each narrows its arguments and calls the smaller function, with a datatype of many elements if a count is too large for an int
//! (`upper-half/src/stubs/large.rs`).

use std::fmt::Write;

use super::{direct, kind};
use crate::large::Twin;
use crate::table::{Class, Direction, Form, Function, Parameter};

/// Constructors of datatypes that handle larger numbers differently (`upper-half/src/stubs/large/layouts.rs`).
const LAYOUTS: [&str; 9] = [
    "MPI_Type_contiguous",
    "MPI_Type_create_hindexed",
    "MPI_Type_create_hindexed_block",
    "MPI_Type_create_hvector",
    "MPI_Type_create_indexed_block",
    "MPI_Type_create_struct",
    "MPI_Type_create_subarray",
    "MPI_Type_indexed",
    "MPI_Type_vector",
];

/// Writes the twin of a function.
pub fn twin(text: &mut String, function: &Function, twin: &Twin) {
    let name = function.rust_name();
    let called = format!("{}_c", function.called);
    let each = || function.parameters.iter();
    let signature: Vec<String> = each()
        .map(|it| format!("{}: {}", it.name, wide_type(twin, it)))
        .collect();
    let _ = writeln!(
        text,
        "\n#[unsafe(export_name = \"{called}\")]\nunsafe extern \"C\" fn {name}_large({}) -> c_int {{\n\
         // SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {{",
        signature.join(", ")
    );
    if super::roots::has(function) {
        text.push_str(&super::roots::nulls(function));
    }
    let mut lists = vec![];
    for (index, parameter) in each().enumerate() {
        let (own, next) = (&parameter.name, function.parameters.get(index + 1));
        let raise = match LAYOUTS.contains(&function.name.as_str()) {
            true => format!("return large::layouts::{name}({});", super::names(function)),
            false if is_by_element(function) => in_parts(function, &called),
            false => format!("return large::too_large(c\"{called}\");"),
        };
        match (twin.widens(own), parameter.direction) {
            (None, _) => {}
            (Some(Some(length)), _) => {
                lists.push(format!("narrow_{own}"));
                let length = elements(function, parameter, length);
                let _ = writeln!(
                    text,
                    "let Some(narrow_{own}) = large::Ints::new({own}, {length}) else {{\n{raise}\n}};"
                );
            }
            (Some(None), Direction::In) if is_typed(function, next) => {
                let datatype = next.map_or("", |it| it.name.as_str());
                let _ = writeln!(
                    text,
                    "let Some(narrow_{own}) = large::Typed::new({own}, {datatype}) else {{\n{raise}\n}};"
                );
            }
            (Some(None), Direction::In) => {
                let _ = writeln!(
                    text,
                    "let Some(narrow_{own}) = large::int({own}) else {{\n{raise}\n}};"
                );
            }
            (Some(None), Direction::Out) => {
                let _ = writeln!(text, "let mut narrow_{own} = 0;");
            }
            (Some(None), Direction::InOut) => {
                let _ = writeln!(
                    text,
                    "let Some(mut narrow_{own}) = large::read({own}) else {{\n{raise}\n}};"
                );
            }
        }
    }
    // Operations that are begun by the short way own no memory, so operations with lists go the long way.
    let long =
        direct::is_collective(function) && function.form == Form::Started && !lists.is_empty();
    let arguments: Vec<String> = each()
        .enumerate()
        .map(|(index, it)| {
            let before = index.checked_sub(1).map(|at| &function.parameters[at]);
            argument(function, twin, it, before, long)
        })
        .collect();
    let smaller = if long {
        format!("{name}_converted")
    } else {
        name.clone()
    };
    let _ = writeln!(text, "let code = {smaller}({});", arguments.join(", "));
    for parameter in each() {
        let own = &parameter.name;
        if twin.widens(own) == Some(None) && parameter.direction != Direction::In {
            let _ = writeln!(text, "large::write({own}, narrow_{own}, code);");
        }
    }
    if !lists.is_empty() && matches!(function.form, Form::Started | Form::Persistent) {
        let _ = writeln!(
            text,
            "if code == 0 {{\nlarge::keep(PlaceOf::at(request), vec![{}]);\n}}",
            lists.join(", ")
        );
    }
    let _ = writeln!(text, "code\n}}\n}}\nexport!(P{called} => {name}_large);");
}

/// Whether a function reduces element by element, and is complete when it returns: then it can process the elements in parts, one after the other.
fn is_by_element(function: &Function) -> bool {
    let has = |name: &str| function.parameters.iter().any(|it| it.name == name);
    let reduces = function.parameters.iter().any(|it| it.kind == "operator");
    let is_over = function.form == Form::Blocking || function.name == "MPI_Reduce_local";
    reduces && is_over && function.class != Class::OneSided && has("count")
}

/// Returns the call of such a function for more elements than an int holds.
fn in_parts(function: &Function, called: &str) -> String {
    let given = |it: &Parameter| match (it.kind.as_str(), it.direction) {
        ("buffer", Direction::In) => format!("large::behind({}, from)", it.name),
        ("buffer", _) => format!("large::behind({}, from).cast_mut()", it.name),
        _ if it.name == "count" => "part".to_string(),
        _ => it.name.clone(),
    };
    let arguments: Vec<String> = function.parameters.iter().map(given).collect();
    let (name, arguments) = (function.rust_name(), arguments.join(", "));
    format!(
        "return large::in_parts(count, datatype, c\"{called}\", |from, part| {name}({arguments}));"
    )
}

/// Whether a count is of elements of the datatype behind it, and may become a count of a larger datatype. Reductions accept only predefined datatypes, except
/// on windows. The number before a layout's datatype is not such a count.
fn is_typed(function: &Function, next: Option<&Parameter>) -> bool {
    if LAYOUTS.contains(&function.name.as_str()) {
        return false;
    }
    let reduces = function.parameters.iter().any(|it| it.kind == "operator");
    let is_datatype = |it: &Parameter| {
        it.kind == "datatype" && it.direction == Direction::In && it.length.is_none()
    };
    next.is_some_and(is_datatype) && (!reduces || function.class == Class::OneSided)
}

fn wide_type(twin: &Twin, parameter: &Parameter) -> String {
    match (twin.widens(&parameter.name), parameter.direction) {
        (None, _) => kind::application_type(parameter),
        (Some(Some(_)), _) => "*const Count".to_string(),
        (Some(None), Direction::In) => "Count".to_string(),
        (Some(None), _) => "*mut Count".to_string(),
    }
}

/// Returns the expression for the number of elements of a list.
fn elements(function: &Function, parameter: &Parameter, length: &str) -> String {
    let processes = |expression: &str| {
        let counted = format!("large::processes(Handle::object(comm), |comm| {expression})");
        let both = function.parameters.iter().any(|it| it.name == "sendbuf");
        match both && parameter.name.starts_with('s') && length == "peers" {
            true => format!("if abi::is_in_place(sendbuf) {{ 0 }} else {{ {counted} }}"),
            false => counted,
        }
    };
    match length {
        "root" => processes("if steps::is_root(root, comm) { steps::peers(comm) } else { 0 }"),
        "peers" | "members" | "sources" | "destinations" => {
            processes(&format!("steps::{length}(comm)"))
        }
        other => format!("usize::try_from({other}).unwrap_or(0)"),
    }
}

fn argument(
    function: &Function,
    twin: &Twin,
    parameter: &Parameter,
    before: Option<&Parameter>,
    objects: bool,
) -> String {
    let own = &parameter.name;
    let counted = |it: &&Parameter| {
        twin.widens(&it.name) == Some(None)
            && it.direction == Direction::In
            && is_typed(function, Some(parameter))
    };
    let typed = before.filter(counted);
    match (twin.widens(own), parameter.direction) {
        (None, _) => match (typed, kind::to_objects(parameter)) {
            (Some(count), _) if objects => {
                format!("Handle::object(narrow_{}.datatype())", count.name)
            }
            (Some(count), _) => format!("narrow_{}.datatype()", count.name),
            (None, Some(object)) if objects => object,
            _ => own.clone(),
        },
        (Some(Some(_)), _) => format!("narrow_{own}.list()"),
        (Some(None), Direction::In) => {
            let index = function.parameters.iter().position(|it| it.name == *own);
            let next = index.and_then(|index| function.parameters.get(index + 1));
            match is_typed(function, next) {
                true => format!("narrow_{own}.count()"),
                false => format!("narrow_{own}"),
            }
        }
        (Some(None), _) => format!("large::place({own}, &mut narrow_{own})"),
    }
}
