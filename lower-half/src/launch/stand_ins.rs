//! The way in which a program gets the stubs: in the place of its own libmpi, or preloaded before it.
//!
//! The library with the stubs has all names that programs need of libmpi, and that MPI's own layers for Fortran and C++ need. Another library may need other
//! names of the real one (OpenSHMEM's does), or MPI itself may have another name. For such a program the stubs are preloaded, and the real library is loaded too.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stillpoint_linkage::{Family, missing};
use stillpoint_protocol::installed;
use stillpoint_protocol::launch::Launch;

use super::error::LaunchError;
use crate::gate::stand_in;
use crate::loader::map::Mapped;

/// The variable by which a user has the stubs preloaded: for a program that loads a library with such needs later.
const STUBS: &str = "STILLPOINT_STUBS";
/// The file name of the library that every program preloads.
const PRELOAD: &str = "libstillpoint_preload.so";

/// Finds the library that every program preloads.
pub fn preload() -> Result<PathBuf, LaunchError> {
    let found = installed::beside(PRELOAD).map_err(std::io::Error::other);
    found.map_err(LaunchError::set_up("finding the library to preload"))
}

/// Chooses the way for a program, whose loader is `interpreter`, and returns the libraries to preload.
pub fn choose(
    launch: Option<&Launch>,
    program: &Path,
    library: &Path,
    interpreter: &Mapped,
) -> Result<Vec<PathBuf>, LaunchError> {
    let preload = preload()?;
    let variable = |name: &str| {
        let kept = stillpoint_protocol::launch::KEPT_FROM_LOADER
            .iter()
            .find(|(own, _)| *own == name);
        std::env::var_os(kept.map_or(name, |(_, keeper)| keeper))
    };
    let family = launch.and_then(|launch| Family::of_abi(&launch.mpi));
    let family = family.unwrap_or(Family::OpenMpi);
    let forced = std::env::var_os(STUBS).is_some_and(|way| way == "preload");
    if forced || missing(program, library, family, variable).is_some() {
        return Ok(vec![preload, library.to_owned()]);
    }
    if let Ok(about) = std::fs::metadata(library) {
        stand_in::checked(about.dev(), about.ino());
    }
    stand_in::begin(&(interpreter.base..interpreter.end), family);
    Ok(vec![preload])
}
