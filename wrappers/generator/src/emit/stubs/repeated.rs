//! Stubs of operations that are begun again after a restart.

use std::fmt::Write;

use super::{argument, before, home, kind};
use crate::table::{Class, Form, Function, Parameter};

/// Writes a nonblocking or persistent collective operation: the call that begins or makes it is kept, to be made again after a restart.
pub fn repeated(text: &mut String, function: &Function) {
    text.push_str("let _inside = crossing::enter_as(StayKind::Collective);\n");
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
        "let code = steps::{}({clocked}, request, {repeatable}, {held}, move |lower, word| {});",
        if function.form == Form::Started {
            "started"
        } else {
            "persistent"
        },
        again(function),
    );
    let _ = writeln!(
        text,
        "if code != 0 {{\nreturn errhandler::raise({clocked}, code, c\"{}\");\n}}\n0",
        function.called
    );
}

/// Returns the call that begins an operation in the lower half, now or again.
pub fn again(function: &Function) -> String {
    let arguments: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| match parameter.kind.as_str() {
            "request" => "word".to_string(),
            _ => argument(parameter),
        })
        .collect();
    format!("(lower.{})({})", function.rust_name(), arguments.join(", "))
}

/// Returns the expression for whether MPI leaves the operation's input unchanged.
pub fn repeatable(function: &Function) -> String {
    let in_place: Vec<String> = function
        .parameters
        .iter()
        .filter(|parameter| changed_in_place(function, parameter))
        .map(|p| format!("!abi::is_in_place({})", p.name))
        .collect();
    if in_place.is_empty() {
        "true".to_string()
    } else {
        in_place.join(" && ")
    }
}

/// Returns the expression for the input that a blocking operation still has when it is begun anew (`upper-half/src/operations/clock/kept.rs`). Operations on
/// files and windows are not begun again.
pub fn input(function: &Function) -> String {
    if function.class != Class::Collective {
        return "Input::Changed".to_string();
    }
    match (keeps(function), repeatable(function).as_str()) {
        (_, "true") => "Input::Untouched".to_string(),
        (None, condition) if let Some(input) = of_blocks(function) => {
            format!("if {condition} {{ Input::Untouched }} else {{ {input} }}")
        }
        (None, condition) => format!("Input::untouched({condition})"),
        (Some(keeps), condition) => {
            let buffer = "recvbuf";
            let at = function.parameters.iter().position(|it| it.name == buffer);
            let given = |behind: usize| {
                let at = at.expect("a receive buffer") + behind;
                function.parameters[at].name.as_str()
            };
            let (count, datatype) = (given(1), given(2));
            format!(
                "if {condition} {{ Input::Untouched }} else {{ \
                 Input::in_place(Keeps::{keeps}, {}, {buffer}, {count}, {datatype}, comm) }}",
                needs_all(function)
            )
        }
    }
}

/// Returns which part of the buffer is the input of an operation in place, if one count and one datatype, the arguments behind the buffer, determine it:
/// `Keeps` of `upper-half/src/operations/clock/kept.rs`.
pub fn keeps(function: &Function) -> Option<&'static str> {
    match function.name.as_str() {
        "MPI_Allreduce" | "MPI_Scan" | "MPI_Exscan" => Some("Once"),
        "MPI_Reduce_scatter_block" | "MPI_Alltoall" => Some("EachMember"),
        "MPI_Allgather" => Some("OwnBlock"),
        _ => None,
    }
}

/// Returns the expression for the input in place of an operation with a count for each member. In `MPI_Reduce_scatter`, members without a block need not be in
/// place when others are: so they cannot know that these meet.
pub fn of_blocks(function: &Function) -> Option<&'static str> {
    match function.name.as_str() {
        "MPI_Allgatherv" => {
            Some("Input::blocks_in_place(true, recvbuf, recvcounts, Some(displs), recvtype, comm)")
        }
        "MPI_Reduce_scatter" => {
            Some("Input::blocks_in_place(false, recvbuf, recvcounts, None, datatype, comm)")
        }
        "MPI_Alltoallv" | "MPI_Alltoallw" => Some("Input::met(comm)"),
        _ => None,
    }
}

/// Whether no member's operation is over before all have begun it. In a scan, the members with low ranks need nothing of the others.
fn needs_all(function: &Function) -> bool {
    !matches!(function.name.as_str(), "MPI_Scan" | "MPI_Exscan")
}

/// Whether the parameter says that the input lies in the buffer for the result (the sent data may be in place), where MPI may change it before the operation is
/// complete. Gathers change it too: some of Open MPI's algorithms for `MPI_Allgather` move the blocks at the end. In a scatter, the *result* may be in place,
/// and the input has a buffer of its own; neighbourhood operations have nothing in place.
pub fn changed_in_place(function: &Function, parameter: &Parameter) -> bool {
    let name = function.name.to_lowercase();
    let scatters = name.contains("scatter") && !name.contains("reduce");
    let both = function.parameters.iter().any(|it| it.name == "recvbuf");
    parameter.name == "sendbuf" && both && !scatters && !name.contains("neighbor")
}
