//! The two MPIs of a launch: the one that the program was built for, and the launcher's library, below it.
//!
//! A binary interface is called `openmpi`, `mpich`, or `abi` (the MPI 5.0 standard's own). If both are the same, only handles are converted; otherwise values
//! are, too. The files of this installation determine the possible pairs.

use std::path::{Path, PathBuf};

use stillpoint_ids::Rank;
use stillpoint_linkage::{Family, Needed, found, needed, of_library};

use stillpoint_refusals::Code;

use super::Failure;
use super::launch::LaunchPosition;
use super::options::{LaunchOptions, Mpi};
use super::siblings::Siblings;

/// Names of libraries, as programs ask for them, and the family of each. A file with such a name but of another family does not count.
pub const LIBRARIES: [(&str, Family); 4] = [
    ("libmpi.so.40", Family::OpenMpi),
    (STANDARD, Family::Standard),
    ("libmpich.so.12", Family::Mpich),
    ("libmpi.so.12", Family::Mpich),
];
/// The library with the standard's binary interface, by its name in the standard.
const STANDARD: &str = "libmpi_abi.so.1";
/// The most ancestors to search for the launcher's process.
const ANCESTORS: usize = 8;

/// The binary interfaces of a program and of the library below it.
#[derive(Debug)]
pub struct Pair {
    pub program: &'static str,
    pub library: &'static str,
    /// The library's file, if it has to be loaded.
    pub file: Option<PathBuf>,
}

/// Chooses the MPIs of a launch. `executable` is the program that it starts afresh.
pub fn choose(
    options: &LaunchOptions,
    place: &LaunchPosition,
    executable: &Path,
) -> Result<Pair, Failure> {
    let programs = needed(executable, |name| std::env::var_os(name));
    // A program without a visible MPI may load one later: it is the one that it would find without Stillpoint.
    let native = place
        .mpi
        .filter(|mpi| Siblings::upper(mpi).is_ok())
        .unwrap_or("openmpi");
    let program = match (options.mpi, &programs) {
        (Mpi::Openmpi, _) => "openmpi",
        (Mpi::Mpich, _) => "mpich",
        (Mpi::Auto, Some(needed)) => needed.family.word(),
        (Mpi::Auto, None) => native,
    };
    let mut pair = Pair::below(options, place, program)?;
    if let Some(needed) = &programs {
        pair.on_its_own(needed);
    }
    let library = pair.library;
    let chosen = match options.mpi {
        Mpi::Auto => place.mpi.unwrap_or(library),
        _ => program,
    };
    match programs {
        Some(needed) if needed.family.word() != program => {
            Err(another(executable, &needed, chosen, place.mpi))
        }
        Some(needed) if Siblings::upper(program).is_err() => match chosen == program {
            true => Err(unsupported(executable, &needed)),
            false => Err(another(executable, &needed, chosen, place.mpi)),
        },
        _ => Ok(pair),
    }
}

/// The pair that an epoch records, or the launch that carries it on.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub program: String,
    /// The library that is, or was, below.
    pub library: String,
}

impl Recorded {
    /// The MPIs of a launch that carries on. The program's is the epoch's, and the library is the launcher's.
    pub fn carried_on(
        &self,
        options: &LaunchOptions,
        place: &LaunchPosition,
    ) -> Result<Pair, Failure> {
        let word = &self.program;
        let Some(family) = Family::of_abi(word) else {
            return Err(Failure::refuse(
                Code::MpiMissing,
                Failure::FAILED,
                format!(
                    "the epoch's program was built for {word}, and this build of Stillpoint does not know it: use the \
                     build that wrote the epoch"
                ),
            ));
        };
        let asked = match options.mpi {
            Mpi::Auto => family,
            Mpi::Openmpi => Family::OpenMpi,
            Mpi::Mpich => Family::Mpich,
        };
        if asked != family {
            return Err(Failure::refuse(
                Code::WrongOptions,
                Failure::FAILED,
                format!(
                    "--mpi {}: the epoch's program was built for {family}, and a restart cannot change that: leave the \
                     option out",
                    asked.word()
                ),
            ));
        }
        let pair = Pair::below(options, place, family.word())?;
        if let Err(missing) = Siblings::find(pair.program, pair.library) {
            return Err(Failure::refuse(
                Code::MpiMissing,
                Failure::FAILED,
                format!(
                    "the epoch's program was built for {family}, but this launcher's library is {}: {missing}; restart it \
                     on the library that it ran on: {}",
                    pair.library_in_words(),
                    in_words(&self.library)
                ),
            ));
        }
        Ok(pair)
    }

    /// Checks that a rank has the same pair as rank 0: all ranks of a launch have one.
    pub fn is_one_with(&self, pair: &Pair, rank: Rank) -> Result<(), Failure> {
        if (self.program.as_str(), self.library.as_str()) == (pair.program, pair.library) {
            return Ok(());
        }
        Err(Failure::refuse(
            Code::RanksDiffer,
            Failure::FAILED,
            format!(
                "rank {rank}: {} here, but {} on rank 0's host: all ranks of a job need MPI libraries with the same \
                 binary interface",
                over(pair.program, pair.library),
                over(&self.program, &self.library)
            ),
        ))
    }

    /// A message for the user if the job's library has changed.
    pub fn change(&self, pair: &Pair) -> Option<String> {
        (self.library != pair.library).then(|| {
            format!(
                "the job ran on {} and continues on {}",
                in_words(&self.library),
                pair.library_in_words()
            )
        })
    }
}

impl Pair {
    /// A program with that binary interface, on the library of the options or of the launcher.
    fn below(
        options: &LaunchOptions,
        place: &LaunchPosition,
        program: &'static str,
    ) -> Result<Pair, Failure> {
        let on = |library: &'static str, file| Pair {
            program,
            library,
            file,
        };
        if let Some(file) = &options.mpi_library {
            return match of_library(file) {
                // The lower half for Open MPI is linked to it.
                Some(family @ Family::OpenMpi) if is_found(file) => Ok(on(family.word(), None)),
                Some(family @ Family::OpenMpi) => Err(Failure::refuse(
                    Code::MpiMissing,
                    Failure::FAILED,
                    format!(
                        "--mpi-library {}: this is {family}, but not the one that the dynamic linker finds ({}): set \
                         LD_LIBRARY_PATH so that it finds this one, or name a library with the standard's binary \
                         interface ({STANDARD}) or with MPICH's",
                        file.display(),
                        LIBRARIES[0].0
                    ),
                )),
                Some(family) => Ok(on(family.word(), Some(file.clone()))),
                None => Err(Failure::refuse(
                    Code::MpiMissing,
                    Failure::FAILED,
                    format!(
                        "--mpi-library {}: this is not an MPI library",
                        file.display()
                    ),
                )),
            };
        }
        // Libraries of MPICH's family may have a file for each of two binary interfaces.
        if place.mpi == Some("mpich") {
            let files = of_launcher();
            let own = files.iter().find(|(family, _)| family.word() == program);
            if let Some((family, file)) = own.or(files.first()) {
                return Ok(on(family.word(), Some(file.clone())));
            }
        }
        Ok(on(place.mpi.unwrap_or(program), None))
    }

    /// Uses the library that the program would load by itself, unless the launcher or the options give a file. The program may be the only one that knows
    /// where to find it.
    fn on_its_own(&mut self, needed: &Needed) {
        // The lower half for Open MPI is linked to it.
        if self.file.is_none()
            && needed.family != Family::OpenMpi
            && needed.family.word() == self.library
        {
            self.file = Some(needed.library.clone());
        }
    }

    /// Adds the library's file of a fresh start of the same program. A launch that carries on has only the program's name.
    pub fn found_as(mut self, afresh: Option<&Pair>) -> Pair {
        if let Some(afresh) = afresh.filter(|afresh| afresh.library == self.library) {
            self.file = self.file.or_else(|| afresh.file.clone());
        }
        self
    }

    fn library_in_words(&self) -> String {
        match &self.file {
            Some(file) => format!("{} ({})", in_words(self.library), file.display()),
            None => in_words(self.library),
        }
    }
}

/// Whether the dynamic linker finds this Open MPI by its name, and not another.
fn is_found(file: &Path) -> bool {
    let (name, _) = LIBRARIES[0];
    let found = found(name, |name| std::env::var_os(name)).and_then(|it| it.canonicalize().ok());
    found.is_some() && found == file.canonicalize().ok()
}

/// A library by the word for its binary interface.
fn in_words(library: &str) -> String {
    match Family::of_abi(library) {
        Some(Family::Standard) => "a library with the standard's ABI".to_owned(),
        Some(family) => family.to_string(),
        None => library.to_owned(),
    }
}

/// The libraries that belong to the launcher, except Open MPI's. They lie beside the launcher's programs, and the standard's comes first.
fn of_launcher() -> Vec<(Family, PathBuf)> {
    let mut process = std::process::id().to_string();
    for _ in 0..ANCESTORS {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok();
        let parent = status.and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
            Some(line.trim().to_owned())
        });
        let Some(parent) = parent else { break };
        let program = std::fs::read_link(format!("/proc/{parent}/exe"));
        let mut files = program.map_or_else(|_| vec![], |program| beside(&program));
        files.retain(|(family, _)| *family != Family::OpenMpi);
        if !files.is_empty() {
            return files;
        }
        process = parent;
    }
    vec![]
}

/// The MPI libraries that were installed together with a program.
pub fn beside(program: &Path) -> Vec<(Family, PathBuf)> {
    let Some(directory) = program.parent() else {
        return vec![];
    };
    let places = ["../lib", "../lib64", "../lib/x86_64-linux-gnu"];
    let files = LIBRARIES.iter().flat_map(|(name, family)| {
        let candidates = places.map(|place| directory.join(place).join(name));
        let found = candidates
            .into_iter()
            .filter_map(|file| file.canonicalize().ok())
            .find(|file| of_library(file) == Some(*family));
        found.map(|file| (*family, file))
    });
    files.collect()
}

/// Both binary interfaces, for people.
pub fn over(program: &str, library: &str) -> String {
    match program == library {
        true => program.to_owned(),
        false => format!("{program} on {library}"),
    }
}

/// Refuses a program of another MPI, which would crash at its first call.
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
    Failure::refuse(Code::MpiMissing, Failure::NOT_EXECUTABLE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(library: &'static str, file: Option<&str>) -> Pair {
        Pair {
            program: "mpich",
            library,
            file: file.map(PathBuf::from),
        }
    }

    fn with(pair: Pair, family: Family) -> Option<PathBuf> {
        let mut pair = pair;
        pair.on_its_own(&Needed {
            family,
            library: PathBuf::from("/own"),
        });
        pair.file
    }

    #[test]
    fn a_program_is_on_its_own_library_where_no_launcher_has_one() {
        let own = Some(PathBuf::from("/own"));
        assert_eq!(with(on("mpich", None), Family::Mpich), own);
        // The file is the launcher's, or was named.
        let other = Some(PathBuf::from("/launcher"));
        assert_eq!(with(on("mpich", Some("/launcher")), Family::Mpich), other);
        // The library is to be another than the program's.
        assert_eq!(with(on("openmpi", None), Family::Mpich), None);
        assert_eq!(with(on("openmpi", None), Family::OpenMpi), None);
    }

    #[test]
    fn what_carries_on_is_on_the_library_that_its_program_would_be_started_on() {
        let file = |pair: Pair, afresh: Pair| pair.found_as(Some(&afresh)).file;
        let own = on("mpich", Some("/own"));
        assert_eq!(file(on("mpich", None), own), Some(PathBuf::from("/own")));
        let own = on("mpich", Some("/own"));
        assert_eq!(file(on("abi", None), own), None);
        let own = on("mpich", Some("/own"));
        let other = Some(PathBuf::from("/launcher"));
        assert_eq!(file(on("mpich", Some("/launcher")), own), other);
        assert_eq!(on("mpich", None).found_as(None).file, None);
    }
}
