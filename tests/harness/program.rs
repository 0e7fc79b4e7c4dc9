//! The programs under `tests/programs`: found by their path, described by their first comment, and compiled when one of
//! their sources is newer.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use stillpoint_refusals::Code;

use crate::mpis::Mpi;
use crate::{Failed, ensure, place};

/// A program's behaviour during a checkpoint, which is also the folder of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sets something up and waits.
    Still,
    /// Never stops changing.
    Moving,
    /// Holds something that forbids a checkpoint.
    Refused,
    /// Belongs to a test of its own.
    Special,
    /// Uses the driver of a GPU, and belongs to a test of its own.
    Gpu,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Kind::Still => "still",
            Kind::Moving => "moving",
            Kind::Refused => "refused",
            Kind::Special => "special",
            Kind::Gpu => "gpu",
        }
    }
}

/// The default way to a still point.
pub const CLOCK: &str = "clock";

/// One program.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub source: PathBuf,
    pub kind: Kind,
    /// The numbers of ranks that it can run with.
    pub ranks: Vec<u32>,
    /// The ways to a still point (`run --safe-state`) that it can run with.
    pub safe_states: Vec<String>,
    /// Compiler flags.
    flags: Vec<String>,
    /// A source in `programs/libraries` that becomes a shared library beside the program.
    library: Option<String>,
    /// The reasons for which a checkpoint is refused.
    pub refuses: Vec<Code>,
    /// The most bytes of one rank's image.
    pub most_bytes: Option<u64>,
    /// The MPI that it is built for.
    mpi: Mpi,
}

impl Program {
    fn read(source: PathBuf, kind: Kind) -> Result<Program, Failed> {
        let text = fs::read_to_string(&source)
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let line = text
            .lines()
            .take(6)
            .find_map(|line| line.split_once("trial:"));
        let Some((_, line)) = line else {
            return Err(format!(
                "{}: no `trial:` in its first lines",
                source.display()
            ));
        };
        let name = source
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut program = Program {
            name,
            source,
            kind,
            ranks: vec![],
            safe_states: vec![CLOCK.to_owned()],
            flags: vec![],
            library: None,
            refuses: vec![],
            most_bytes: None,
            mpi: Mpi::own(),
        };
        for word in line.split_whitespace().filter(|word| *word != "*/") {
            let wrong = || format!("{}: cannot understand '{word}'", program.source.display());
            let (key, value) = word.split_once('=').ok_or_else(wrong)?;
            match key {
                "ranks" => {
                    program.ranks = value
                        .split(',')
                        .map(str::parse)
                        .collect::<Result<_, _>>()
                        .map_err(|_| wrong())?
                }
                "safe_states" => {
                    program.safe_states = value.split(',').map(str::to_owned).collect()
                }
                "flags" => program.flags = value.split(',').map(str::to_owned).collect(),
                "library" => program.library = Some(value.to_owned()),
                "refuses" => {
                    program.refuses = value
                        .split(',')
                        .map(Code::named)
                        .collect::<Option<_>>()
                        .ok_or_else(wrong)?
                }
                "most_bytes" => program.most_bytes = Some(value.parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        ensure!(
            !program.ranks.is_empty(),
            "{}: no ranks",
            program.source.display()
        );
        Ok(program)
    }

    /// Returns all programs of a kind, by name.
    pub fn all(kind: Kind) -> Result<Vec<Program>, Failed> {
        let folder = place::sources().join(kind.folder());
        let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        sources.sort();
        sources
            .into_iter()
            .map(|source| Program::read(source, kind))
            .collect()
    }

    /// Returns one program by its name.
    pub fn named(kind: Kind, name: &str) -> Result<Program, Failed> {
        let found = Program::all(kind)?
            .into_iter()
            .find(|program| program.name == name);
        found.ok_or_else(|| format!("no program {name} in programs/{}", kind.folder()))
    }

    /// Returns the same program on one way to a still point.
    pub fn towards(&self, safe_state: &str) -> Program {
        Program {
            safe_states: vec![safe_state.to_owned()],
            ..self.clone()
        }
    }

    /// Returns the same program built for another MPI.
    pub fn built_for(&self, mpi: &Mpi) -> Program {
        Program {
            mpi: mpi.clone(),
            ..self.clone()
        }
    }

    /// Returns the language of its source, by the end of the file's name.
    pub fn language(&self) -> &str {
        let end = self.source.extension().and_then(OsStr::to_str);
        end.unwrap_or_default()
    }

    /// Returns the MPI that it is built for.
    pub fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// Returns the executable, and compiles it if need be.
    pub fn build(&self) -> Result<PathBuf, Failed> {
        let folder = match self.mpi.is_own() {
            true => "programs".to_owned(),
            false => format!("programs-{}", self.mpi.name),
        };
        let folder = place::target()
            .join("trials")
            .join(folder)
            .join(self.kind.folder());
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let executable = folder.join(&self.name);
        // Two tests of the same program must not compile it at once.
        let lock = folder.join(format!("{}.lock", self.name));
        let lock = File::create(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
        lock.lock()
            .map_err(|error| format!("cannot lock: {error}"))?;
        let library = self.library.as_deref().map(source_of_library);
        let shared: Vec<PathBuf> = SHARED
            .iter()
            .map(|name| place::sources().join(name))
            .chain(library)
            .chain(headers()?)
            .collect();
        let needs = shared
            .iter()
            .map(PathBuf::as_path)
            .chain([self.source.as_path()]);
        if up_to_date(&executable, needs) {
            return Ok(executable);
        }
        if let Some(library) = &self.library {
            build_library(library, &folder)?;
        }
        let draft = folder.join(format!("{}.new", self.name));
        match self.source.extension().and_then(OsStr::to_str) {
            Some("rs") => self.build_with_cargo(&draft)?,
            Some(language) => self.build_with_mpi(language, &draft)?,
            None => return Err(format!("{}: in no language", self.source.display())),
        }
        fs::rename(&draft, &executable)
            .map_err(|error| format!("{}: {error}", executable.display()))?;
        Ok(executable)
    }

    /// Builds C, C++ and Fortran with `mpicc`, `mpicxx` and `mpifort` of its MPI.
    fn build_with_mpi(&self, language: &str, draft: &Path) -> Result<(), Failed> {
        let mut compiler;
        match language {
            "c" => {
                compiler = self.mpi.compiler("mpicc");
                compiler.args([
                    "-std=gnu11",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-Wno-stringop-overread",
                ]);
            }
            "cpp" => {
                compiler = self.mpi.compiler("mpicxx");
                compiler.args(["-std=gnu++17", "-Wall"]);
            }
            "f90" => {
                let modules = draft.with_extension("modules");
                fs::create_dir_all(&modules)
                    .map_err(|error| format!("{}: {error}", modules.display()))?;
                compiler = self.mpi.compiler("mpifort");
                compiler
                    .args(["-fallow-argument-mismatch", "-w", "-J"])
                    .arg(modules);
                compiler.arg(place::sources().join("trial.f90"));
            }
            _ => return Err(format!("{}: no compiler for this", self.source.display())),
        }
        compiler
            .args(["-O1", "-g", "-o"])
            .arg(draft)
            .arg(&self.source)
            .args(&self.flags)
            .args(self.mpi.linked(language))
            .arg("-lm");
        succeed(compiler)
    }

    /// Builds Rust: the package in `programs/rust`, or the one in `programs/cudarc`, has each program as a binary.
    fn build_with_cargo(&self, draft: &Path) -> Result<(), Failed> {
        let package = match self.kind {
            Kind::Gpu => "cudarc",
            _ => "rust",
        };
        let target = place::target().join("trials").join(package);
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "build",
                "--release",
                "--quiet",
                "--locked",
                "--bin",
                &self.name,
            ])
            .arg("--manifest-path")
            .arg(place::sources().join(package).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target);
        succeed(cargo)?;
        let built = target.join("release").join(&self.name);
        fs::copy(&built, draft).map_err(|error| format!("{}: {error}", built.display()))?;
        Ok(())
    }
}

/// The sources of every program, besides its own source and the headers.
const SHARED: &[&str] = &[
    "trial.f90",
    "rust/Cargo.toml",
    "rust/Cargo.lock",
    "rust/trial.rs",
    "cudarc/Cargo.toml",
    "cudarc/Cargo.lock",
];

/// Returns every header, also those in a folder of their own.
fn headers() -> Result<Vec<PathBuf>, Failed> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>, Failed> {
        let entries =
            fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    };
    let mut headers = vec![];
    for path in list(&place::sources())? {
        match path.is_dir() {
            true => headers.extend(list(&path)?),
            false => headers.push(path),
        }
    }
    headers.retain(|path| path.extension() == Some(OsStr::new("h")));
    Ok(headers)
}

fn source_of_library(library: &str) -> PathBuf {
    place::sources().join("libraries").join(library)
}

/// Builds a shared library of `programs/libraries` in a folder, and returns its path. A program that loads an earlier
/// one does not see this one half written.
pub fn build_library(library: &str, folder: &Path) -> Result<PathBuf, Failed> {
    let stem = library.trim_end_matches(".c");
    let built = folder.join(format!("lib{stem}.so"));
    let draft = folder.join(format!("lib{stem}.so.new"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-g", "-o"]);
    cc.arg(&draft).arg(source_of_library(library));
    succeed(cc)?;
    fs::rename(&draft, &built).map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(built)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|about| about.modified()).ok()
}

fn up_to_date<'a>(made: &Path, mut of: impl Iterator<Item = &'a Path>) -> bool {
    let Some(made) = modified(made) else {
        return false;
    };
    of.all(|source| modified(source).is_some_and(|changed| changed < made))
}

fn succeed(mut command: Command) -> Result<(), Failed> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stillpoint_faults::Point;

    /// Returns the names between two marks in the settings of nextest, which bars separate.
    fn names(from: &str, to: &str) -> Vec<String> {
        let settings = fs::read_to_string(place::project().join(".config/nextest.toml")).unwrap();
        let (_, rest) = settings.split_once(from).unwrap();
        let (list, _) = rest.split_once(to).unwrap();
        list.split('|').map(|name| name.trim().to_owned()).collect()
    }

    /// nextest reports no error for a name in a filter that no test has.
    #[test]
    fn everything_that_the_fast_profile_names_is_there() {
        let programs = names("(still|moving) :: (", ")");
        assert_eq!(programs.len(), 60);
        for name in programs {
            let found = [Kind::Still, Kind::Moving]
                .iter()
                .find_map(|kind| Program::named(*kind, &name).ok());
            let program = found.unwrap_or_else(|| panic!("no program {name}"));
            assert!(program.ranks.contains(&2), "{name} has no two ranks");
            assert_eq!(program.safe_states[0], CLOCK, "{name}");
        }
        let points = names("binary(fault_points) & test(/(?x) ^ (", ")");
        assert_eq!(points.len(), 12);
        for name in points {
            let known = |point: &&Point| name.ends_with(&format!("-{}", point.name()));
            assert!(Point::ALL.iter().any(|point| known(&point)), "no {name}");
        }
    }
}
