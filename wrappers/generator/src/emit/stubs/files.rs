//! The stubs' additional code for operations on files.

use std::fmt::Write;

use super::{failed, home};
use crate::table::{Class, Function};

/// Functions on files that access no data and are allowed in `MPI_MODE_SEQUENTIAL`.
const ALWAYS: [&str; 8] = [
    "MPI_File_get_atomicity",
    "MPI_File_get_group",
    "MPI_File_get_info",
    "MPI_File_get_size",
    "MPI_File_get_type_extent",
    "MPI_File_preallocate",
    "MPI_File_set_atomicity",
    "MPI_File_sync",
];

/// Writes checks for files: refuses operations that a sequential file does not permit, and notes those that use the shared pointer.
pub fn in_sequence(text: &mut String, function: &Function) {
    let name = function.name.as_str();
    if function.class != Class::File
        || home(function).is_none()
        || split_end(function)
        || ALWAYS.contains(&name)
    {
        return;
    }
    let is_shared = name.contains("_shared") || name.contains("_ordered");
    let moves = name.contains("_seek") || name.contains("_position");
    if moves || !is_shared {
        let _ = writeln!(
            text,
            "if let Err(code) = files::unsequenced(fh) {{\n{}\n}}",
            failed(function)
        );
    }
    if is_shared {
        text.push_str("files::shares(fh);\n");
    }
}

/// Whether it ends a split collective operation on a file.
pub fn split_end(function: &Function) -> bool {
    function.class == Class::File && function.name.ends_with("_end")
}

/// Returns the name of a split collective operation on a file in the lower half, without `_end`, if the function begins one.
pub fn split_begin(function: &Function) -> Option<String> {
    let name = function.rust_name();
    let begun = name.strip_suffix("_begin")?;
    (function.class == Class::File).then(|| begun.to_string())
}
