//! Which MPI a launch loads: the launcher's, which must be the program's too.

use std::path::Path;

use stillpoint_linkage::{Family, Needed, needed};

use super::Failure;
use super::launch::Place;
use super::options::Mpi;
use super::start::Siblings;

/// The MPI to load. `executable` is what the launch starts, if it starts anything afresh.
pub fn choose(
    wanted: Mpi,
    place: &Place,
    executable: Option<&Path>,
) -> Result<&'static str, Failure> {
    let programs =
        executable.and_then(|path| Some((path, needed(path, |name| std::env::var_os(name))?)));
    let of_program = programs.as_ref().map(|(_, needed)| word(&needed.family));
    let chosen = match (wanted, place.mpi) {
        (Mpi::Openmpi, Some("mpich")) => {
            return Err(Failure::failed(
                "--mpi openmpi under MPICH's launcher: use the mpirun of Open MPI",
            ));
        }
        (Mpi::Mpich, Some("openmpi")) => {
            return Err(Failure::failed(
                "--mpi mpich under Open MPI's launcher: use the mpirun of MPICH",
            ));
        }
        (Mpi::Openmpi, _) => "openmpi",
        (Mpi::Mpich, _) => "mpich",
        (Mpi::Auto, Some(launchers)) => launchers,
        (Mpi::Auto, None) => of_program.unwrap_or("openmpi"),
    };
    match programs {
        Some((path, needed)) if word(&needed.family) != chosen => {
            Err(another(path, &needed, chosen, place.mpi))
        }
        Some((path, needed)) if Siblings::find(chosen).is_err() => Err(unsupported(path, &needed)),
        _ => Ok(chosen),
    }
}

/// What options, job.json and file names call it.
fn word(family: &Family) -> &'static str {
    match family {
        Family::OpenMpi => "openmpi",
        Family::Mpich => "mpich",
    }
}

/// A program of another MPI would crash at its first call.
fn another(path: &Path, needed: &Needed, chosen: &str, launcher: Option<&str>) -> Failure {
    let family = &needed.family;
    let here = match chosen {
        "mpich" => "MPICH",
        _ => "Open MPI",
    };
    let where_ = match launcher {
        Some(_) => format!("this is the launcher of {here}"),
        None => format!("--mpi {chosen} asks for {here}"),
    };
    let advice = match Siblings::find(word(family)) {
        Ok(_) => format!("start it with the mpirun of {family}, or build it for {here}"),
        Err(_) => {
            format!("build it for {here}; this build of Stillpoint has no support for {family}")
        }
    };
    refused(path, needed, &format!("but {where_}: {advice}"))
}

fn unsupported(path: &Path, needed: &Needed) -> Failure {
    let family = &needed.family;
    let why =
        format!("and this build of Stillpoint has no support for {family}: build it for Open MPI");
    refused(path, needed, &why)
}

fn refused(path: &Path, needed: &Needed, why: &str) -> Failure {
    let (path, library) = (path.display(), needed.library.display());
    let family = &needed.family;
    let text = format!("{path}: needs {family} ({library}), {why}");
    Failure::new(Failure::NOT_EXECUTABLE, text)
}
