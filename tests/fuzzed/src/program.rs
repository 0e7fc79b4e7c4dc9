//! A user's program or library: the MPI that it needs.

use std::ffi::OsString;

use stillpoint_linkage::{Family, missing, needed, number, of_library};

use crate::input_directory::InputDirectory;

/// Any bytes, as an ELF file.
pub fn program(input: &[u8]) -> bool {
    let place = InputDirectory::new();
    let path = place.file("program", input);
    let preloaded = |name: &str| (name == "LD_LIBRARY_PATH").then(|| OsString::from(place.path()));
    let needed = needed(&path, preloaded);
    missing(&path, &path, Family::OpenMpi, preloaded);
    let exported = number(&path, "stillpoint_contract");
    of_library(&path).is_some() || needed.is_some() || exported.is_some()
}
