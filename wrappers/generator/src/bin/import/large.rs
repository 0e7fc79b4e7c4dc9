//! The functions that have a twin with large counts, and their parameters that are wider there.

use serde_json::Value;

const HEADER: &str = "\
# Functions that MPI-4 gave a twin with large counts (`MPI_Send_c`), one a line: name, and its parameters that are an int, and wider in the twin. What is an
# address or a count before is as wide in both. Behind an array stands how many elements it has: so many as another parameter says, or as there are peers,
# members, sources or destinations of the communicator; `root` where only the root has it, for each peer. `written` instead: the twin is written by hand.
# Made by `import` from the MPI 5.0 standard's JSON.
";

/// Twins that cannot be generated: other parameters, other callbacks of the application, or results that may be too large for an int.
const WRITTEN: [&str; 15] = [
    "MPI_Buffer_attach",
    "MPI_Buffer_detach",
    "MPI_Comm_attach_buffer",
    "MPI_Comm_detach_buffer",
    "MPI_Get_count",
    "MPI_Get_elements",
    "MPI_Op_create",
    "MPI_Pack_size",
    "MPI_Register_datarep",
    "MPI_Session_attach_buffer",
    "MPI_Session_detach_buffer",
    "MPI_Status_set_elements",
    "MPI_Type_get_contents",
    "MPI_Type_get_envelope",
    "MPI_Type_size",
];

/// Returns the text of the table.
pub fn table(text: &str) -> Result<String, Box<dyn std::error::Error>> {
    let standard: Value = serde_json::from_str(text)?;
    let entries = standard.as_object().ok_or("not a table of functions")?;
    let mut lines: Vec<String> = entries.values().filter_map(line).collect();
    lines.sort();
    Ok(format!("{HEADER}{}\n", lines.join("\n")))
}

fn line(entry: &Value) -> Option<String> {
    let attributes = &entry["attributes"];
    if attributes["callback"] == true
        || !attributes["predefined_function"].is_null()
        || attributes["c_expressible"] == false
    {
        return None;
    }
    let name = entry["name"].as_str()?;
    let parameters = entry["parameters"].as_array()?;
    let has_twin = |it: &&Value| {
        let kind = it["kind"].as_str().unwrap_or_default();
        kind.starts_with("POLY") || it["large_only"] == true
    };
    parameters.iter().find(has_twin)?;
    if WRITTEN.contains(&name) {
        return Some(format!("{name} written"));
    }
    let wider = parameters.iter().filter(|it| is_wider(it));
    let words = wider.map(|it| word(name, it));
    Some(
        [name.to_string()]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// Whether the parameter is an int in the smaller function.
fn is_wider(parameter: &Value) -> bool {
    let kind = parameter["kind"].as_str().unwrap_or_default();
    let as_wide = [
        "POLYDISPLACEMENT_AINT_COUNT",
        "POLYDISPOFFSET",
        "POLYDTYPE_PACK_SIZE",
        "POLYDTYPE_STRIDE_BYTES",
        "POLYLOCATION",
    ];
    kind.starts_with("POLY") && !as_wide.contains(&kind)
}

fn word(function: &str, parameter: &Value) -> String {
    let name = parameter["name"]
        .as_str()
        .unwrap_or_default()
        .to_lowercase();
    let length = match parameter["length"].as_str() {
        None => return name,
        Some("*") => per_process(function, &name, parameter["root_only"] == true),
        Some(length) => length,
    };
    format!("{name}[{length}]")
}

fn per_process(function: &str, name: &str, root_only: bool) -> &'static str {
    let function = function.to_lowercase();
    match (function.contains("neighbor"), root_only) {
        (true, _) if name.starts_with('s') => "destinations",
        (true, _) => "sources",
        (_, true) => "root",
        _ if function.contains("reduce_scatter") => "members",
        _ => "peers",
    }
}
