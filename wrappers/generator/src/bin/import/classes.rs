//! The class of each function, and how its stub is made: the standard's JSON has neither.

mod names;

use names::{ABSENT, COLLECTIVES, COMPLETION, DYNAMIC, ENVIRONMENT, LOCAL, ONE_SIDED};
use stillpoint_generator::table::{Class, Form};

/// Returns the class and form of a function.
pub fn of(name: &str) -> (Class, Form) {
    let class = class(name);
    (
        class,
        if is_absent(name) {
            Form::Absent
        } else {
            form(name, class)
        },
    )
}

/// Whether the name is a persistent collective operation of MPI-4.
pub fn is_persistent_collective(name: &str) -> bool {
    stem(name)
        .strip_suffix("_init")
        .is_some_and(|stem| COLLECTIVES.contains(&stem))
}

fn stem(name: &str) -> &str {
    name.strip_prefix("MPI_")
        .or_else(|| name.strip_prefix("MPIX_"))
        .unwrap_or(name)
}

fn is_absent(name: &str) -> bool {
    let stem = stem(name);
    let exported = [
        "Buffer_attach",
        "Buffer_detach",
        "Pack",
        "Pack_external",
        "Pack_external_size",
        "Pack_size",
        "Pcontrol",
        "Probe",
        "Publish_name",
        "Put",
        "Status_set_cancelled",
        "Status_set_elements",
        "Status_set_elements_x",
    ];
    let later = [
        "Group_from_session_pset",
        "Request_get_status_all",
        "Request_get_status_any",
        "Request_get_status_some",
        "Type_get_value_index",
        "T_category_get_events",
        "T_category_get_num_events",
        "Status_c2f08",
        "Status_f082c",
        "Status_f082f",
        "Status_f2f08",
        "F_sync_reg",
        "Sizeof",
    ];
    !exported.contains(&stem)
        && (ABSENT.iter().any(|prefix| stem.starts_with(prefix))
            || later.contains(&stem)
            || stem.ends_with("_toint")
            || stem.ends_with("_fromint")
            || (name.starts_with("MPI_") && is_persistent_collective(name)))
}

fn class(name: &str) -> Class {
    let stem = stem(name);
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| stem.starts_with(prefix));
    if stem.starts_with("T_") {
        Class::Tool
    } else if is_conversion(stem) {
        Class::Conversion
    } else if stem.contains("ession") {
        Class::Session
    } else if let Some(class) = collective_class(name) {
        class
    } else if starts(&["Psend", "Precv", "Pready", "Parrived"]) {
        Class::Partitioned
    } else if starts(&["File_", "Register_datarep"]) {
        Class::File
    } else if starts(&["Win_"]) || ONE_SIDED.contains(&stem) {
        Class::OneSided
    } else if starts(&["Comm_spawn", "Open_port", "Close_port"]) || DYNAMIC.contains(&stem) {
        Class::Dynamic
    } else if is_completion(stem) {
        Class::Completion
    } else if is_point_to_point(stem) {
        Class::PointToPoint
    } else if ENVIRONMENT.contains(&stem) {
        Class::Environment
    } else if is_query(stem) {
        Class::Query
    } else if starts(&["Status_", "Remove_error"]) || LOCAL.contains(&stem) {
        Class::Local
    } else {
        Class::Object
    }
}

/// Whether the function converts between handles of C and Fortran, or other numbers.
fn is_conversion(stem: &str) -> bool {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| stem.starts_with(prefix));
    let ends = |ends: &[&str]| ends.iter().any(|end| stem.ends_with(end));
    ends(&["_f2c", "_c2f", "_toint", "_fromint"])
        || stem.ends_with("int")
            && starts(&["Comm_", "Group_", "Type_", "Op_", "Request_", "Info_"])
        || starts(&["Status_c2f", "Status_f", "Abi_"])
}

fn collective_class(name: &str) -> Option<Class> {
    let stem = stem(name);
    if COLLECTIVES.contains(&stem) {
        Some(Class::Collective)
    } else if is_persistent_collective(name) {
        Some(Class::PersistentCollective)
    } else if COLLECTIVES
        .iter()
        .any(|known| stem == format!("I{}", known.to_lowercase()))
    {
        Some(Class::NonblockingCollective)
    } else {
        None
    }
}

fn is_completion(stem: &str) -> bool {
    let starts = |prefix| stem.starts_with(prefix);
    (starts("Wait") || starts("Test")) && stem != "Test_cancelled"
        || starts("Request_")
        || COMPLETION.contains(&stem)
}

fn is_point_to_point(stem: &str) -> bool {
    let stem = stem.strip_suffix("_init").unwrap_or(stem);
    [
        "Send",
        "Bsend",
        "Ssend",
        "Rsend",
        "Recv",
        "Isend",
        "Ibsend",
        "Issend",
        "Irsend",
        "Irecv",
        "Sendrecv",
        "Sendrecv_replace",
        "Isendrecv",
        "Isendrecv_replace",
        "Probe",
        "Iprobe",
        "Mprobe",
        "Improbe",
        "Mrecv",
        "Imrecv",
    ]
    .contains(&stem)
        || stem.contains("uffer_")
        || stem.ends_with("_buffer")
}

fn is_query(stem: &str) -> bool {
    [
        "Comm_rank",
        "Comm_size",
        "Comm_remote_size",
        "Comm_test_inter",
        "Comm_compare",
        "Comm_get_name",
        "Group_rank",
        "Group_size",
        "Group_compare",
        "Group_translate_ranks",
        "Topo_test",
        "Cart_get",
        "Cart_rank",
        "Cart_coords",
        "Cart_shift",
        "Cartdim_get",
        "Cart_map",
        "Graph_map",
        "Graph_get",
        "Graphdims_get",
        "Graph_neighbors",
        "Graph_neighbors_count",
        "Dist_graph_neighbors",
        "Dist_graph_neighbors_count",
        "Type_size",
        "Type_size_x",
        "Type_get_extent",
        "Type_get_extent_x",
        "Type_get_true_extent",
        "Type_get_true_extent_x",
        "Type_extent",
        "Type_lb",
        "Type_ub",
        "Type_get_name",
        "Type_get_envelope",
        "Type_get_contents",
        "Type_get_value_index",
        "Type_match_size",
        "Op_commutative",
        "Info_get",
        "Info_get_nkeys",
        "Info_get_nthkey",
        "Info_get_valuelen",
        "Info_get_string",
    ]
    .contains(&stem)
}

fn form(name: &str, class: Class) -> Form {
    let stem = stem(name);
    let is = |names: &[&str]| names.contains(&stem);
    let attached = stem.contains("errhandler")
        || stem.contains("keyval")
        || stem.contains("_attr")
        || stem.ends_with("_name");
    match class {
        Class::Collective => Form::Blocking,
        Class::NonblockingCollective => Form::Started,
        Class::PersistentCollective => Form::Persistent,
        Class::PointToPoint | Class::Completion | Class::Object | Class::Conversion => {
            Form::Written
        }
        Class::Environment if is(&["Get_processor_name"]) => Form::Plain,
        Class::Environment => Form::Written,
        Class::Local => match stem {
            "Wtime" | "Wtick" | "Get_address" | "Address" | "Get_count" | "Error_class"
            | "Error_string" => Form::Written,
            _ => Form::Plain,
        },
        Class::Query if topology_or_plain(stem) => Form::Plain,
        Class::Query => Form::Written,
        Class::OneSided if stem.starts_with("Win_") && !is(&["Win_shared_query", "Win_sync"]) => {
            Form::Written
        }
        Class::File
            if attached
                || is(&[
                    "File_open",
                    "File_close",
                    "File_get_amode",
                    "File_get_view",
                    "File_set_view",
                    "File_set_info",
                    "Register_datarep",
                ]) =>
        {
            Form::Written
        }
        Class::File if is_collective_on_a_file(stem) => Form::Blocking,
        Class::Dynamic if stem.starts_with("Comm_spawn") => Form::Written,
        Class::Dynamic if is(&["Comm_accept", "Comm_connect"]) => Form::Blocking,
        Class::OneSided | Class::File | Class::Dynamic | Class::Tool => Form::Plain,
        Class::Session | Class::Partitioned => Form::Absent,
    }
}

/// Whether the lower half answers the query; the upper half answers the others from its own records.
fn topology_or_plain(stem: &str) -> bool {
    stem.contains("art") && stem != "Type_get_contents"
        || stem.contains("raph")
        || stem.starts_with("Type_") && (stem.contains("size") || stem.contains("extent"))
        || ["Topo_test", "Type_lb", "Type_ub", "Op_commutative"].contains(&stem)
}

fn is_collective_on_a_file(stem: &str) -> bool {
    stem.contains("_all")
        || stem.contains("_ordered")
        || [
            "File_set_size",
            "File_preallocate",
            "File_set_atomicity",
            "File_sync",
            "File_seek_shared",
        ]
        .contains(&stem)
}
