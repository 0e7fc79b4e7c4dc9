//! A stub's code for buffers in a GPU's memory (`upper-half/src/operations/devices`). The table determines which parameters are buffers, and the parts of each.
//!
//! A function with a buffer that is not described here is a build error, so none can be forgotten.

use std::fmt::Write;

use super::{home, kind, names, raised_on, signature};
use crate::table::{Class, Direction, Form, Function, Parameter};

/// The treatment of a function's buffers on a device.
#[derive(Debug, PartialEq, Eq)]
enum Service {
    /// The function has no buffers, or does not read their contents.
    None,
    /// The function is written by hand, including this check.
    ByHand,
    /// The function fails with a reason.
    Refused,
    /// Host memory takes their place; the parts of each buffer.
    Staged(Vec<String>),
}

fn buffers(function: &Function) -> Vec<&Parameter> {
    let parameters = function.parameters.iter();
    parameters.filter(|it| it.kind == "buffer").collect()
}

fn service(function: &Function) -> Service {
    let has_none = buffers(function).is_empty() || function.class == Class::Tool;
    if has_none || function.form == Form::Absent {
        return Service::None;
    }
    if function.form == Form::Written {
        return Service::ByHand;
    }
    let refused = match function.class {
        // A later call completes the operations that they begin.
        Class::OneSided => true,
        Class::File => {
            let name = &function.name;
            name.starts_with("MPI_File_i") || name.ends_with("_begin") || name.ends_with("_end")
        }
        _ => false,
    };
    if refused {
        return Service::Refused;
    }
    let parts = buffers(function).into_iter();
    Service::Staged(parts.map(|it| parts_of(function, it)).collect())
}

/// Returns the common name of an operation in all its forms: `alltoall` for `MPIX_Alltoall_init`.
fn stem(function: &Function) -> String {
    let name = function.name.trim_start_matches("MPIX_");
    let name = name.trim_start_matches("MPI_").trim_end_matches("_init");
    let name = match function.form {
        Form::Started => name.trim_start_matches('I'),
        _ => name,
    };
    name.to_lowercase()
}

/// Returns the expression for the parts of a buffer.
fn parts_of(function: &Function, buffer: &Parameter) -> String {
    let at = function.parameters.iter().position(|it| it == buffer);
    let behind = &function.parameters[at.expect("one of its own") + 1..];
    let first = |kind: &str, word: &str| {
        let found = behind
            .iter()
            .find(|it| it.kind == kind && it.name.contains(word));
        found.map(|it| it.name.clone()).unwrap_or_default()
    };
    let (count, displacements) = (first("int", "count"), first("int", "displs"));
    let datatype = first("datatype", "");
    let sent = buffer.direction == Direction::In;
    // The processes that this one exchanges data with, and how many elements each has.
    let once = format!("devices::once({count}, {datatype})");
    let each = |peers: &str| format!("devices::each(steps::{peers}(comm), {count}, {datatype})");
    let listed = |peers: &str| {
        format!("devices::listed(steps::{peers}(comm), {count}, {displacements}, {datatype})")
    };
    let typed = |peers: &str| {
        let displacements = match first("aint", "displs") {
            none if none.is_empty() => displacements.clone(),
            aints => aints,
        };
        let count_of = if sent && peers == "peers" {
            format!(
                "if abi::is_in_place({}) {{ 0 }} else {{ steps::peers(comm) }}",
                buffer.name
            )
        } else {
            format!("steps::{peers}(comm)")
        };
        format!(
            "devices::typed({count}, {displacements}, steps::Words::new(HandleKind::Datatype, {datatype}, {count_of}).objects())"
        )
    };
    let at_root = |parts: String| {
        format!("if steps::is_root(root, comm) {{ {parts} }} else {{ Vec::new() }}")
    };
    let of_members = |parts: String| {
        format!("if steps::is_member(root, comm) {{ {parts} }} else {{ Vec::new() }}")
    };
    let (to, from) = ("destinations", "sources");
    match (stem(function).as_str(), sent) {
        ("bcast", _) => of_members_or_root(&once),
        ("allreduce" | "scan" | "exscan" | "reduce_local", _) => once,
        ("reduce" | "gather" | "gatherv", true) => of_members(once),
        ("reduce", false) => at_root(once),
        ("gather", false) => at_root(each("peers")),
        ("gatherv", false) => at_root(listed("peers")),
        ("scatter", true) => at_root(each("peers")),
        ("scatterv", true) => at_root(listed("peers")),
        ("scatter" | "scatterv", false) => of_members(once),
        ("allgather" | "allgatherv" | "neighbor_allgather" | "neighbor_allgatherv", true) => once,
        ("allgather", false) => each("peers"),
        ("allgatherv", false) => listed("peers"),
        ("alltoall", _) => each("peers"),
        ("alltoallv", _) => listed("peers"),
        ("alltoallw", _) => typed("peers"),
        ("neighbor_allgather", false) => each(from),
        ("neighbor_allgatherv", false) => listed(from),
        ("neighbor_alltoall", sent) => each(if sent { to } else { from }),
        ("neighbor_alltoallv", sent) => listed(if sent { to } else { from }),
        ("neighbor_alltoallw", sent) => typed(if sent { to } else { from }),
        // In place, the input for all members lies where the result of one goes.
        ("reduce_scatter_block", true) => each("members"),
        ("reduce_scatter_block", false) => {
            format!(
                "if abi::is_in_place(sendbuf) {{ {} }} else {{ {once} }}",
                each("members")
            )
        }
        ("reduce_scatter", sent) => {
            let all =
                format!("devices::once(devices::total(steps::members(comm), {count}), {datatype})");
            if sent {
                all
            } else {
                format!(
                    "if abi::is_in_place(sendbuf) {{ {all} }} else {{ devices::once(steps::own({count}, comm), {datatype}) }}"
                )
            }
        }
        ("pack" | "pack_external", true) | ("unpack" | "unpack_external", false) => once,
        ("pack" | "pack_external", false) => "devices::bytes(outsize)".to_string(),
        ("unpack" | "unpack_external", true) => "devices::bytes(insize)".to_string(),
        _ if function.class == Class::File => once,
        (stem, _) => panic!(
            "{}: what '{}' of '{stem}' is made of is not known",
            function.name, buffer.name
        ),
    }
}

fn of_members_or_root(parts: &str) -> String {
    format!(
        "if steps::is_root(root, comm) || steps::is_member(root, comm) {{ {parts} }} else {{ Vec::new() }}"
    )
}

/// Writes the beginning of a function: its code for a process that uses a GPU.
pub fn beginning(text: &mut String, function: &Function) {
    match service(function) {
        Service::None | Service::ByHand => {}
        Service::Refused => {
            let pointers: Vec<String> = buffers(function)
                .iter()
                .map(|it| match it.direction {
                    Direction::In => it.name.clone(),
                    _ => format!("{}.cast_const()", it.name),
                })
                .collect();
            let _ = writeln!(
                text,
                "if devices::present() && let Some(code) = devices::refuses({}, c\"{}\", &[{}]) {{\nreturn code;\n}}",
                raised_on(function),
                function.called,
                pointers.join(", ")
            );
        }
        Service::Staged(_) => {
            let _ = writeln!(
                text,
                "if devices::present() && let Some(code) = {}_on_devices({}) {{\nreturn code;\n}}",
                function.rust_name(),
                names(function)
            );
        }
    }
}

/// Writes the function that carries an operation out with staged buffers. [`beginning`] calls it with objects in place of handles, and it calls `again`, whose
/// parameters have the types of `types`.
pub fn function(
    text: &mut String,
    function: &Function,
    again: &str,
    types: fn(&Parameter) -> String,
) {
    let Service::Staged(parts) = service(function) else {
        return;
    };
    let signature = signature(function, kind::inner_type);
    let (parameters, _) = signature.rsplit_once(" -> ").expect("it returns something");
    let name = function.rust_name();
    let mut given = Vec::new();
    let mut index = 0;
    for parameter in &function.parameters {
        given.push(if parameter.kind == "buffer" {
            index += 1;
            format!("staged.at({})", index - 1)
        } else if types(parameter) == kind::inner_type(parameter) {
            parameter.name.clone()
        } else {
            kind::from_objects(parameter)
        });
    }
    let staged: Vec<String> = buffers(function)
        .iter()
        .zip(&parts)
        .map(|(it, parts)| {
            let way = match it.direction {
                Direction::In => "In",
                _ => "Out",
            };
            format!(
                "devices::Buffer::new({}, devices::BufferUse::{way}, {parts})",
                it.name
            )
        })
        .collect();
    let home = home(function).map_or("core::ptr::null_mut()", |it| it.name.as_str());
    let request = function.parameters.iter().any(|it| it.kind == "request");
    let end = if request {
        "staged.of_request(code, request)"
    } else {
        "staged.end(code)"
    };
    let many = match function.parameters.len() {
        0..=7 => "",
        _ => "#[expect(clippy::too_many_arguments, reason = \"the MPI function has them\")]\n",
    };
    let _ = writeln!(
        text,
        "\n{many}#[cold]\n#[inline(never)]\nunsafe fn {name}_on_devices{parameters} -> Option<c_int> {{\n\
         // SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {{\n\
         let inside = crossing::enter();\n\
         let buffers = [{}];\n\
         let staged = match devices::Staged::new({home}, c\"{}\", {}, buffers)? {{\nOk(staged) => staged,\nErr(code) => return Some(code),\n}};\n\
         drop(inside);\n\
         let code = {again}({});\n\
         Some({end})\n}}\n}}",
        staged.join(", "),
        function.called,
        function.form == Form::Persistent,
        given.join(", "),
    );
}
