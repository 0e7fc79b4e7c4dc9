//! A user's program or library: the MPI that it needs.

use std::ffi::OsString;

use stillpoint_linkage::opened::{LONGEST, Opened};
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
    opened(input);
    of_library(&path).is_some() || needed.is_some() || exported.is_some()
}

/// The same bytes, as a library that a loader has opened: read in small pieces.
fn opened(input: &[u8]) {
    let library = Opened::new(|into: &mut [u8], at: u64| {
        let from = usize::try_from(at).ok().and_then(|at| input.get(at..));
        let from = from.unwrap_or_default();
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        count
    });
    if let Some(library) = library {
        let name = library.name(&mut [0; LONGEST]).map(<[u8]>::len);
        assert!(name.is_none_or(|length| length < LONGEST));
        // A library of one family defines what every MPI does.
        assert!(library.mpi().is_none() || library.defines(b"PMPI_Init"));
    }
}
