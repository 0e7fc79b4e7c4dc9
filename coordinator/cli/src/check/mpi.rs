//! The available MPIs: binary interfaces of this installation, libraries and launchers on this machine, and the way of calls for each pair.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use stillpoint_linkage::{Family, found, number, of_library};

use crate::mpi::{LIBRARIES, beside};
use crate::siblings::Siblings;

/// Names of launchers.
const LAUNCHERS: [&str; 5] = ["mpirun", "mpiexec", "mpiexec.hydra", "prterun", "srun"];
/// A symbol of a lower half: it says whether frequent calls work without a switch of thread areas.
const NEAR: &str = "STILLPOINT_NEAR";

#[derive(Debug, Serialize)]
pub struct Mpis {
    abis: Vec<Abi>,
    libraries: Vec<Library>,
    launchers: Vec<Launcher>,
    pairs: Vec<Pair>,
}

/// A binary interface.
#[derive(Debug, Serialize)]
struct Abi {
    name: &'static str,
    of: String,
    /// Whether it can carry programs that were built for it.
    programs: bool,
    /// Whether libraries with this interface can be below.
    libraries: bool,
}

/// A library, and how it is found.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Library {
    abi: &'static str,
    file: PathBuf,
    /// Whether `ld.so` finds it; otherwise it lies beside a launcher.
    by_name: bool,
}

#[derive(Debug, Serialize)]
struct Launcher {
    name: &'static str,
    file: PathBuf,
    /// The binary interfaces of the libraries that were installed with it.
    libraries: BTreeSet<&'static str>,
}

#[derive(Debug, Serialize)]
struct Pair {
    program: &'static str,
    library: &'static str,
    way: CallPath,
    /// The missing parts, if the way is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<String>,
}

/// The way of calls to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CallPath {
    /// The library's own functions get the program's values; only handles are converted.
    Direct,
    /// Values are converted; frequent calls keep their thread area.
    Near,
    /// Values are converted, or only handed on, and every call switches thread areas.
    Converted,
    /// This installation does not have it.
    Absent,
}

impl CallPath {
    fn word(self) -> &'static str {
        match self {
            CallPath::Direct => "direct",
            CallPath::Near => "near",
            CallPath::Converted => "converted",
            CallPath::Absent => "absent",
        }
    }

    fn of(same: bool, near: bool) -> CallPath {
        match (same, near) {
            (true, true) => CallPath::Direct,
            (false, true) => CallPath::Near,
            (_, false) => CallPath::Converted,
        }
    }
}

impl Mpis {
    pub fn here() -> Mpis {
        let launchers = launchers();
        let libraries = libraries(&launchers);
        let abis = Family::ALL.map(|family| Abi {
            name: family.word(),
            of: family.to_string(),
            programs: Siblings::upper(family.word()).is_ok(),
            libraries: Siblings::lower(family.word()).is_ok(),
        });
        let pairs = Family::ALL
            .iter()
            .flat_map(|program| Family::ALL.map(|library| pair(program.word(), library.word())));
        Mpis {
            abis: abis.into(),
            libraries,
            launchers,
            pairs: pairs.collect(),
        }
    }

    pub fn in_words(&self) -> String {
        let mut text = String::from("\nMPI libraries\n");
        for library in &self.libraries {
            let how = if library.by_name {
                ""
            } else {
                "  (beside its launcher)"
            };
            text.push_str(&format!(
                "  {:<10} {}{how}\n",
                library.abi,
                library.file.display()
            ));
        }
        if self.libraries.is_empty() {
            text.push_str("  none found\n");
        }
        text.push_str("launchers\n");
        for launcher in &self.launchers {
            let with: Vec<&str> = launcher.libraries.iter().copied().collect();
            text.push_str(&format!(
                "  {:<14} {}  {}\n",
                launcher.name,
                launcher.file.display(),
                with.join(", ")
            ));
        }
        if self.launchers.is_empty() {
            text.push_str("  none found\n");
        }
        text.push_str("a program built for, on a library with the binary interface of\n");
        for pair in &self.pairs {
            let lacks = pair.lacks.as_deref().unwrap_or_default();
            let line = format!(
                "  {:<10} {:<10} {:<10} {lacks}",
                pair.program,
                pair.library,
                pair.way.word()
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn pair(program: &'static str, library: &'static str) -> Pair {
    let parts = [Siblings::upper(program), Siblings::lower(library)];
    let lacks: Vec<String> = parts
        .iter()
        .filter_map(|part| Some(part.as_ref().err()?.to_string()))
        .collect();
    let near = parts[1]
        .as_ref()
        .is_ok_and(|lower| number(lower, NEAR) == Some(1));
    Pair {
        program,
        library,
        way: match lacks.is_empty() {
            true => CallPath::of(program == library, near),
            false => CallPath::Absent,
        },
        lacks: (!lacks.is_empty()).then(|| lacks.join("; ")),
    }
}

/// Launchers in `PATH`.
fn launchers() -> Vec<Launcher> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let launchers = LAUNCHERS.iter().filter_map(|name| {
        let places = directories.iter().map(|directory| directory.join(name));
        let file = places.into_iter().find(|file| file.is_file())?;
        Some(Launcher {
            name,
            libraries: installed_with(&file)
                .iter()
                .map(|(family, _)| family.word())
                .collect(),
            file,
        })
    });
    launchers.collect()
}

/// Files installed with a launcher. If its name is a link to another directory, both directories count.
fn installed_with(launcher: &Path) -> Vec<(Family, PathBuf)> {
    let real = launcher.canonicalize();
    let mut files = beside(launcher);
    files.extend(real.iter().flat_map(|real| beside(real)));
    files
}

fn libraries(launchers: &[Launcher]) -> Vec<Library> {
    let mut all = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let by_name = LIBRARIES.iter().filter_map(|(name, family)| {
        let file = found(name, |name| std::env::var_os(name))?
            .canonicalize()
            .ok()?;
        (of_library(&file) == Some(*family)).then_some((*family, file))
    });
    let by_name: Vec<(Family, PathBuf)> = by_name.collect();
    let with = launchers
        .iter()
        .flat_map(|launcher| installed_with(&launcher.file));
    let all_files = by_name
        .into_iter()
        .map(|it| (it, true))
        .chain(with.map(|it| (it, false)));
    for ((family, file), by_name) in all_files {
        if seen.insert(file.clone()) {
            all.insert(Library {
                abi: family.word(),
                file,
                by_name,
            });
        }
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_way_has_one_binary_interface_and_a_library_that_comes_near() {
        assert_eq!(CallPath::of(true, true), CallPath::Direct);
        assert_eq!(CallPath::of(false, true), CallPath::Near);
        assert_eq!(CallPath::of(true, false), CallPath::Converted);
        assert_eq!(CallPath::of(false, false), CallPath::Converted);
    }

    #[test]
    fn every_pair_is_told_of_once() {
        let pairs = Mpis::here().pairs;
        let names: BTreeSet<_> = pairs.iter().map(|it| (it.program, it.library)).collect();
        assert_eq!((pairs.len(), names.len()), (9, 9));
        // No file is installed beside a test.
        assert!(
            pairs
                .iter()
                .all(|it| it.lacks.is_some() == (it.way == CallPath::Absent))
        );
    }
}
