//! The vocabulary of kinds: a parameter's types in C and in the neutral form, and its conversion.

use crate::abi::{Abi, Named};
use crate::table::{Direction, Function, Parameter};

/// The kinds of handles: the table's word, the prefix of the handle type's name in the upper half, the name in `HandleKind`, and C's type.
pub const HANDLES: [(&str, &str, &str, &str); 11] = [
    ("communicator", "Comm", "Communicator", "MPI_Comm"),
    ("group", "Group", "Group", "MPI_Group"),
    ("datatype", "Datatype", "Datatype", "MPI_Datatype"),
    ("operator", "Op", "Operator", "MPI_Op"),
    ("request", "Request", "Request", "MPI_Request"),
    ("errhandler", "Errhandler", "Errhandler", "MPI_Errhandler"),
    ("info", "Info", "Info", "MPI_Info"),
    ("message", "Message", "Message", "MPI_Message"),
    ("window", "Win", "Window", "MPI_Win"),
    ("file", "File", "File", "MPI_File"),
    ("session", "Session", "Session", "MPI_Session"),
];

/// Integers whose special values differ between MPIs, by the name of their set.
pub const SPECIAL: [&str; 21] = [
    "rank",
    "tag",
    "error",
    "mode",
    "assertion",
    "threads",
    "order",
    "distribution",
    "darg",
    "combiner",
    "typeclass",
    "comparison",
    "topology",
    "split",
    "lock",
    "whence",
    "keyval",
    "verbosity",
    "bind",
    "scope",
    "pvarclass",
];

/// Returns a handle's entry in [`HANDLES`], if the kind is one.
pub fn handle(
    kind: &str,
) -> Option<&'static (&'static str, &'static str, &'static str, &'static str)> {
    HANDLES.iter().find(|entry| entry.0 == kind)
}

/// Whether an ABI's handles are the addresses of their objects, or small numbers for predefined ones.
pub fn are_wide(abi: &Abi) -> bool {
    let is_handle = |it: &&Named| HANDLES.iter().any(|handle| handle.3 == it.name);
    let mut handles = abi.types.iter().filter(is_handle);
    handles.all(|it| ["*mut Object", "usize"].contains(&it.kind.as_str()))
}

/// Returns the type of the application's handles of a kind.
pub fn handle_type(kind: &str) -> String {
    format!("{kind}Handle")
}

pub fn is_special(kind: &str) -> bool {
    SPECIAL.contains(&kind)
}

/// Returns the type of one value in the neutral form.
fn neutral_value(kind: &str) -> &'static str {
    match kind {
        "aint" => "isize",
        "count" | "offset" | "displacement" => "i64",
        "tool" => "*mut c_void",
        "status" => "Status",
        kind if handle(kind).is_some() => "Word",
        _ => "i32",
    }
}

/// Returns the type of one value in the application's ABI.
fn application_value(kind: &str) -> String {
    match kind {
        "aint" => "Aint".to_string(),
        "count" => "Count".to_string(),
        "offset" | "displacement" => "Offset".to_string(),
        "fint" => "Fint".to_string(),
        "tool" => "*mut c_void".to_string(),
        "status" => "Status".to_string(),
        kind => match handle(kind) {
            Some(entry) => handle_type(entry.1),
            None => "c_int".to_string(),
        },
    }
}

/// Returns the type of pointer kinds that are the same on both sides.
fn opaque_pointer(parameter: &Parameter) -> Option<&'static str> {
    let out = parameter.direction != Direction::In;
    Some(match parameter.kind.as_str() {
        "buffer" if out => "*mut c_void",
        "buffer" => "*const c_void",
        "pointer" | "toolobject" => "*mut c_void",
        "string" if out => "*mut c_char",
        "string" => "*const c_char",
        "strings" => "*mut *mut c_char",
        "stringarrays" => "*mut *mut *mut c_char",
        "argc" => "*mut c_int",
        "argv" => "*mut *mut *mut c_char",
        "fstatus" if out => "*mut Fint",
        "fstatus" => "*const Fint",
        _ => return None,
    })
}

/// Whether C has a pointer to the value where the table has the value.
pub fn by_pointer(parameter: &Parameter) -> bool {
    parameter.length.is_some() || parameter.direction != Direction::In || parameter.kind == "status"
}

fn pointed(parameter: &Parameter, value: &str) -> String {
    if !by_pointer(parameter) {
        value.to_string()
    } else if parameter.direction == Direction::In {
        format!("*const {value}")
    } else {
        format!("*mut {value}")
    }
}

/// Returns the parameter's type in the dispatch table.
pub fn neutral_type(parameter: &Parameter) -> String {
    if let Some(pointer) = opaque_pointer(parameter) {
        return pointer.replace("c_int", "i32");
    }
    if parameter.kind.starts_with("function:") {
        return "*const c_void".to_string();
    }
    pointed(parameter, neutral_value(kind_of(parameter)))
}

/// Returns the expression that turns a handle, or a pointer to handles, into the upper half's objects, or `None` for other kinds.
pub fn to_objects(parameter: &Parameter) -> Option<String> {
    handle(&parameter.kind)?;
    let name = &parameter.name;
    Some(match way(parameter) {
        Way::Value => format!("Handle::object({name})"),
        Way::List => format!("ListOf::at({name})"),
        Way::Place => format!("PlaceOf::at({name})"),
    })
}

/// Returns the expression that turns the upper half's objects back into a handle, or a pointer to handles.
pub fn from_objects(parameter: &Parameter) -> String {
    let name = &parameter.name;
    match way(parameter) {
        Way::Value => format!("Handle::of({name})"),
        Way::List | Way::Place => format!("{name}.given()"),
    }
}

/// Returns the parameter's type after handles have become objects.
pub fn inner_type(parameter: &Parameter) -> String {
    let Some(entry) = handle(&parameter.kind) else {
        return application_type(parameter);
    };
    match way(parameter) {
        Way::Value => "*mut Object".to_string(),
        Way::List => format!("ListOf<{}>", handle_type(entry.1)),
        Way::Place => format!("PlaceOf<{}>", handle_type(entry.1)),
    }
}

/// How handles are passed.
enum Way {
    Value,
    /// An array that is read.
    List,
    /// The place where they are, or will be.
    Place,
}

fn way(parameter: &Parameter) -> Way {
    match parameter.direction {
        Direction::In if parameter.length.is_none() => Way::Value,
        Direction::In => Way::List,
        _ => Way::Place,
    }
}

/// Returns the parameter's type in the application's ABI.
pub fn application_type(parameter: &Parameter) -> String {
    if let Some(pointer) = opaque_pointer(parameter) {
        return pointer.to_string();
    }
    if let Some(function) = parameter.kind.strip_prefix("function:") {
        return camel(function.trim_start_matches("MPI_"));
    }
    pointed(parameter, &application_value(kind_of(parameter)))
}

fn kind_of(parameter: &Parameter) -> &str {
    if parameter.kind == "weights" {
        "int"
    } else {
        &parameter.kind
    }
}

/// Returns the function's return type in the application's ABI.
pub fn return_type(function: &Function) -> String {
    match function.returns.as_str() {
        "code" => "c_int".to_string(),
        "double" => "f64".to_string(),
        kind => application_value(kind),
    }
}

/// Converts `Comm_copy_attr_function` to `CommCopyAttrFunction`.
fn camel(name: &str) -> String {
    name.split('_').map(super::sentence).collect()
}

/// Whether the function crosses, and so has a place in the dispatch table.
pub fn crosses(function: &Function) -> bool {
    let callbacks = function
        .parameters
        .iter()
        .any(|p| p.kind.starts_with("function:"));
    function.form != crate::table::Form::Absent
        && function.returns == "code"
        && function.name != "MPI_Pcontrol"
        && !function
            .parameters
            .iter()
            .any(|p| p.kind == "fint" || p.kind == "fstatus")
        && (!callbacks
            || [
                "MPI_Op_create",
                "MPI_Grequest_start",
                "MPI_Register_datarep",
            ]
            .contains(&function.name.as_str()))
}
