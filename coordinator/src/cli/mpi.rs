//! Which two MPIs a launch has: the one that the program was built for, and the library below it, which is the launcher's.
//!
//! A binary interface is called `openmpi`, `mpich`, or `abi` (the MPI 5.0 standard's own). Where both are one, nothing but handles is converted; else values
//! are. Which pairs there are, the files of this installation say.

use std::path::{Path, PathBuf};

use stillpoint_linkage::{Family, Needed, needed, of_library};

use super::Failure;
use super::launch::Place;
use super::options::{LaunchOptions, Mpi};
use super::start::Siblings;

/// The library with the standard's binary interface, by the name that the standard gives it.
const STANDARD: &str = "libmpi_abi.so.1";
/// A launcher's own process is no farther away.
const ANCESTORS: usize = 8;

/// The binary interfaces of a program and of the library below it.
pub struct Pair {
    pub program: &'static str,
    pub library: &'static str,
    /// The library's file, where it is to be loaded.
    pub file: Option<PathBuf>,
}

/// The MPIs of a launch. `executable` is what it starts, if it starts anything afresh.
pub fn choose(
    options: &LaunchOptions,
    place: &Place,
    executable: Option<&Path>,
) -> Result<Pair, Failure> {
    let programs =
        executable.and_then(|path| Some((path, needed(path, |name| std::env::var_os(name))?)));
    let of_program = programs.as_ref().map(|(_, needed)| needed.family.word());
    let (below, file) = below(options, place)?;
    let program = match (options.mpi, place.mpi) {
        (Mpi::Openmpi, Some("mpich")) if below == Some("mpich") => {
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
        (Mpi::Auto, Some("mpich")) if below == Some("mpich") => of_program.unwrap_or("mpich"),
        (Mpi::Auto, _) => of_program.unwrap_or("openmpi"),
    };
    let library = below.unwrap_or(program);
    let chosen = match options.mpi {
        Mpi::Auto => place.mpi.unwrap_or(library),
        _ => program,
    };
    match programs {
        Some((path, needed)) if needed.family.word() != program => {
            Err(another(path, &needed, chosen, place.mpi))
        }
        Some((path, needed)) if Siblings::find(program, library).is_err() => {
            match chosen == program {
                true => Err(unsupported(path, &needed)),
                false => Err(another(path, &needed, chosen, place.mpi)),
            }
        }
        _ => Ok(Pair {
            program,
            library,
            file,
        }),
    }
}

/// The binary interface of the library below, and its file: the one that the options name, or the launcher's. `None`: nobody says.
fn below(
    options: &LaunchOptions,
    place: &Place,
) -> Result<(Option<&'static str>, Option<PathBuf>), Failure> {
    if let Some(file) = &options.mpi_library {
        return match of_library(file) {
            Some(Family::Standard) => Ok((Some(Family::Standard.word()), Some(file.clone()))),
            Some(family) => Err(Failure::failed(format!(
                "--mpi-library {}: this is {family}, which has its own binary interface: name a library with the standard's ({STANDARD}), or leave \
                 the option out and start the job with the launcher of {family}",
                file.display()
            ))),
            None => Err(Failure::failed(format!(
                "--mpi-library {}: this is no MPI library",
                file.display()
            ))),
        };
    }
    // MPICH has a library for each of two binary interfaces.
    if place.mpi == Some("mpich")
        && let Some(file) = of_launcher()
    {
        return Ok((Some(Family::Standard.word()), Some(file)));
    }
    Ok((place.mpi, None))
}

/// The library with the standard's binary interface that belongs to the launcher: it is where the launcher's programs are.
fn of_launcher() -> Option<PathBuf> {
    let mut process = std::process::id().to_string();
    for _ in 0..ANCESTORS {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let parent = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))?
            .trim()
            .to_owned();
        let program = std::fs::read_link(format!("/proc/{parent}/exe")).ok()?;
        let file = program.parent()?.join("../lib").join(STANDARD);
        if let Ok(file) = file.canonicalize() {
            return Some(file);
        }
        process = parent;
    }
    None
}

/// Both binary interfaces, for people.
pub fn over(program: &str, library: &str) -> String {
    match program == library {
        true => program.to_owned(),
        false => format!("{program} on {library}"),
    }
}

/// A program of another MPI would crash at its first call.
fn another(path: &Path, needed: &Needed, chosen: &str, launcher: Option<&str>) -> Failure {
    let family = &needed.family;
    let here = match chosen {
        "mpich" => "MPICH",
        "abi" => "a library with the standard's ABI",
        _ => "Open MPI",
    };
    let where_ = match launcher {
        Some(_) => format!("this is the launcher of {here}"),
        None => format!("--mpi {chosen} asks for {here}"),
    };
    let own = family.word();
    let advice = match Siblings::find(own, own) {
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
