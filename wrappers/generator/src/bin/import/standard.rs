//! Reads the standard's JSON and translates its kinds into the table's.

use serde_json::Value;
use stillpoint_generator::table::{Class, Direction, Form, Function, Parameter};

use crate::classified;

/// Returns the standard's functions in C (not the callback types, not the predefined callbacks).
pub fn read(text: &str) -> Result<Vec<Function>, Box<dyn std::error::Error>> {
    let standard: Value = serde_json::from_str(text)?;
    let entries = standard.as_object().ok_or("not a table of functions")?;
    let mut functions = Vec::new();
    for entry in entries.values() {
        let attributes = &entry["attributes"];
        if attributes["callback"] == true
            || !attributes["predefined_function"].is_null()
            || attributes["c_expressible"] == false
        {
            continue;
        }
        functions.push(classified(function(entry)?));
    }
    Ok(functions)
}

fn function(entry: &Value) -> Result<Function, String> {
    let name = text(entry, "name")?;
    let mut parameters = Vec::new();
    for parameter in entry["parameters"].as_array().ok_or("no parameters")? {
        let hidden = text(parameter, "suppress")?.contains("c_parameter");
        let large_only = parameter["large_only"] == true;
        if hidden || large_only || parameter["kind"] == "VARARGS" {
            continue;
        }
        parameters.push(self::parameter(&name, parameter)?);
    }
    let returns = match text(entry, "return_kind")?.as_str() {
        "ERROR_CODE" | "ERROR_CLASS" | "NOTHING" | "KEY_INDEX" => "code".to_string(),
        "WALL_TIME" | "TICK_RESOLUTION" => "double".to_string(),
        other => kind(&name, "", other, "")?.to_string(),
    };
    Ok(Function {
        called: name.clone(),
        name,
        class: Class::Local,
        form: Form::Absent,
        returns,
        parameters,
    })
}

fn parameter(function: &str, entry: &Value) -> Result<Parameter, String> {
    let name = text(entry, "name")?;
    let standard_kind = text(entry, "kind")?;
    let mut direction = match text(entry, "param_direction")?.as_str() {
        "in" => Direction::In,
        "out" => Direction::Out,
        _ => Direction::InOut,
    };
    let kind = kind(
        function,
        &name,
        &standard_kind,
        entry["func_type"].as_str().unwrap_or(""),
    )?;
    let mut length = match &entry["length"] {
        Value::Null => None,
        Value::String(length) if length.is_empty() => Some("*".to_string()),
        Value::String(length) => Some(length.clone()),
        _ => Some("*".to_string()),
    };
    // Strings, argument lists and memory that MPI allocates are pointers already.
    match kind.as_str() {
        "string" | "strings" | "stringarrays" | "argc" | "argv" | "fstatus" => length = None,
        "pointer" => direction = Direction::In,
        // Memory that MPI receives: it will be written to, if not by this call.
        "buffer" if entry["constant"] == false && direction == Direction::In => {
            direction = Direction::InOut;
        }
        "request" if function == "MPI_Cancel" => direction = Direction::InOut,
        "int" | "aint" | "count" if length.is_some() => length = Some("*".to_string()),
        "datatype" if length.as_deref() == Some("*") => {
            length = Some(per_neighbour(function, &name).to_string());
        }
        "status" | "error" if length.as_deref() == Some("*") => {
            length = Some(match function {
                "MPI_Testsome" | "MPI_Waitsome" => "incount".to_string(),
                "MPI_Comm_spawn" | "MPI_Comm_spawn_multiple" => "*".to_string(),
                _ => "count".to_string(),
            });
        }
        _ => {}
    }
    Ok(Parameter {
        // The standard's file has this mark at a buffer that every process receives into.
        root_only: entry["root_only"] == true
            && (function, &*name) != ("MPI_Scatterv_init", "recvbuf"),
        name: rust_word(&name),
        kind,
        direction,
        length,
    })
}

/// Returns how many datatypes an all-to-all operation reads.
fn per_neighbour(function: &str, name: &str) -> &'static str {
    match (function.to_lowercase().contains("neighbor"), name) {
        (false, _) => "peers",
        (true, "sendtypes") => "destinations",
        (true, _) => "sources",
    }
}

/// Returns the table's word for a kind of the standard.
fn kind(function: &str, name: &str, kind: &str, function_type: &str) -> Result<String, String> {
    let extended = function.ends_with("_x");
    let word = match kind {
        "BUFFER" | "C_BUFFER3" | "C_BUFFER4" => "buffer",
        "C_BUFFER" | "C_BUFFER2" | "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" | "EXTRA_STATE"
        | "EXTRA_STATE2" => "pointer",
        "STRING" => "string",
        "STRING_ARRAY" => "strings",
        "STRING_2DARRAY" => "stringarrays",
        "ARGUMENT_COUNT" => "argc",
        "ARGUMENT_LIST" => "argv",
        "FUNCTION" | "POLYFUNCTION" => return Ok(format!("function:{function_type}")),
        "EVENT_CB_FUNCTION" | "EVENT_DROP_CB_FUNCTION" | "EVENT_FREE_CB_FUNCTION" => {
            return Ok("function:MPI_T_event_cb_function".to_string());
        }
        "COMMUNICATOR" => "communicator",
        "GROUP" => "group",
        "DATATYPE" => "datatype",
        "OPERATION" => "operator",
        "REQUEST" => "request",
        "ERRHANDLER" => "errhandler",
        "INFO" => "info",
        "MESSAGE" => "message",
        "WINDOW" => "window",
        "FILE" => "file",
        "SESSION" => "session",
        "STATUS" => "status",
        "F90_STATUS" | "F08_STATUS" => "fstatus",
        "RANK" | "RANK_NNI" if plain_ranks(function) => "int",
        "RANK" | "RANK_NNI" => "rank",
        "TAG" => "tag",
        "ERROR_CODE" | "ERROR_CLASS" | "ERROR_CODE_SHOW_INTENT" => "error",
        "COMM_COMPARISON" | "GROUP_COMPARISON" => "comparison",
        "TOPOLOGY_TYPE" => "topology",
        "COMBINER" => "combiner",
        "KEYVAL" => "keyval",
        "ACCESS_MODE" => "mode",
        "ASSERT" => "assertion",
        "LOCK_TYPE" => "lock",
        "UPDATE_MODE" => "whence",
        "ORDER" => "order",
        "DISTRIB_ENUM" => "distribution",
        "DTYPE_DISTRIBUTION" => "darg",
        "SPLIT_TYPE" => "split",
        "TOOL_VAR_VERBOSITY" => "verbosity",
        "BIND_TYPE" => "bind",
        "VARIABLE_SCOPE" => "scope",
        "PVAR_CLASS" => "pvarclass",
        "THREAD_LEVEL" => "threads",
        "TYPECLASS" => "typeclass",
        "WEIGHT" => "weights",
        "TOOLS_ENUM" | "CVAR" | "PVAR" | "PVAR_SESSION" | "EVENT_REGISTRATION"
        | "EVENT_INSTANCE" => "tool",
        "TOOL_MPI_OBJ" => "toolobject",
        "OFFSET" if function == "MPI_File_set_view" => "displacement",
        "OFFSET" => "offset",
        "NUM_BYTES"
        | "XFER_NUM_ELEM"
        | "TOOLS_TICK_COUNT"
        | "GENERIC_DTYPE_COUNT"
        | "XFER_NUM_ELEM_NNI" => "count",
        "DISPLACEMENT"
        | "POLYDISPLACEMENT_AINT_COUNT"
        | "POLYDTYPE_STRIDE_BYTES"
        | "RMA_DISPLACEMENT_NNI"
        | "WINDOW_SIZE"
        | "ALLOC_MEM_NUM_BYTES"
        | "POLYLOCATION"
        | "POLYDISPOFFSET"
        | "WIN_ATTACH_SIZE"
        | "LOCATION_SMALL"
        | "POLYDTYPE_PACK_SIZE"
        | "DISPOFFSET_SMALL" => "aint",
        _ if kind.starts_with("F90_") => "fint",
        _ if extended && name == "size" => "count",
        _ if kind
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || "_0123456789".contains(letter)) =>
        {
            "int"
        }
        _ => return Err(format!("{function}: kind {kind} is not known")),
    };
    Ok(word.to_string())
}

/// Whether a function's arrays of ranks contain only ranks.
fn plain_ranks(function: &str) -> bool {
    function.starts_with("MPI_Graph_")
        || function.starts_with("MPI_Dist_graph_")
        || (function.starts_with("MPI_Group_") && function.ends_with("cl"))
}

/// Returns a parameter's name, changed if it is a keyword of Rust.
fn rust_word(name: &str) -> String {
    match name {
        "type" => "datatype".to_string(),
        "index" => "index".to_string(),
        other => other.to_lowercase(),
    }
}

fn text(entry: &Value, field: &str) -> Result<String, String> {
    entry[field]
        .as_str()
        .map(str::to_string)
        .ok_or_else(|| format!("no {field} in {entry}"))
}
