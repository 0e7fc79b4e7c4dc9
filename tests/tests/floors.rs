//! The halves have floors: the folders of each have an order, and a folder imports only from earlier ones.
//!
//! Imports are read from the code itself: `use` declarations, and paths that begin with `crate`, `self` or `super`, in macros too. Code
//! under `#[cfg(test)]` may import from anywhere. Inside a floor, no cycle leads through two of its folders. The dependencies between
//! crates are tested too.

#[path = "floors/circles.rs"]
mod circles;
#[path = "floors/crates.rs"]
mod crates;
#[path = "floors/imports.rs"]
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Crate, Import};

/// The floors of a half, the lowest first.
struct House {
    source: &'static str,
    floors: &'static [&'static str],
}

const UPPER: House = House {
    source: "../upper-half/src",
    floors: &[
        "ground",
        "objects",
        "operations",
        "communicators",
        "windows",
        "stubs",
        "checkpoint",
    ],
};

const LOWER: House = House {
    source: "../lower-half/src",
    floors: &[
        "arch", "ground", "threads", "gate", "gpu", "loader", "capture", "restore", "parts", "mpi",
        "executor", "agent", "launch",
    ],
};

/// Reads the `Cargo.toml` of a folder of the project.
fn manifest(folder: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join(folder).join("Cargo.toml");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(house: &House) -> Crate {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(house.source);
    Crate::read(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()))
}

/// Returns imports that lead upwards, and modules that are on no floor.
fn upward(house: &House, code: &Crate) -> Vec<String> {
    let floor = |module: &[String]| {
        let name = module.first()?;
        house.floors.iter().position(|floor| floor == name)
    };
    let mut wrong: Vec<String> = code
        .modules()
        .filter(|module| !module.is_empty() && floor(module).is_none())
        .map(|module| format!("{} stands on no floor", module.join("::")))
        .collect();
    for Import { from, to, path } in code.imports() {
        if from.is_empty() {
            continue;
        }
        if to.is_empty() || floor(to) > floor(from) {
            wrong.push(format!("{} imports {path}", from.join("::")));
        }
    }
    wrong
}

/// Returns a cycle through sibling folders.
fn cycle(code: &Crate) -> Option<Vec<String>> {
    let mut below: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for Import { from, to, .. } in code.imports() {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(from), Some(to)) = (from.get(..=shared), to.get(..=shared))
            && code.is_folder(from)
            && code.is_folder(to)
        {
            below.entry(from.to_vec()).or_default().insert(to.to_vec());
        }
    }
    below.keys().find_map(|start| {
        let mut way = vec![start.clone()];
        let mut seen = BTreeSet::new();
        leads_back(&below, start, start, &mut way, &mut seen)
            .then(|| way.iter().map(|folder| folder.join("::")).collect())
    })
}

fn leads_back(
    below: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
    from: &Vec<String>,
    start: &Vec<String>,
    way: &mut Vec<Vec<String>>,
    seen: &mut BTreeSet<Vec<String>>,
) -> bool {
    for next in below.get(from).into_iter().flatten() {
        way.push(next.clone());
        if next == start || (seen.insert(next.clone()) && leads_back(below, next, start, way, seen))
        {
            return true;
        }
        way.pop();
    }
    false
}

fn stands(house: &House) {
    let code = read(house);
    // A reader that finds no imports would find no errors.
    assert!(
        code.imports().count() > 400,
        "{}: {} imports",
        house.source,
        code.imports().count()
    );
    let wrong = upward(house, &code);
    assert!(
        wrong.is_empty(),
        "{}: a floor imports only from those below it ({}):\n{}",
        house.source,
        house.floors.join(" < "),
        wrong.join("\n")
    );
    assert_eq!(
        cycle(&code),
        None,
        "{}: folders import each other in a circle",
        house.source
    );
}

#[test]
fn no_floor_of_the_upper_half_imports_from_above() {
    stands(&UPPER);
}

#[test]
fn no_floor_of_the_lower_half_imports_from_above() {
    stands(&LOWER);
}

/// Collects the files below a folder, with their text.
fn files(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

#[test]
fn assembly_stands_in_arch() {
    for house in [&UPPER, &LOWER] {
        let mut found = Vec::new();
        files(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(house.source),
            &mut found,
        );
        let holds = |(_, text): &&(PathBuf, String)| text.contains("asm!(");
        let (inside, outside): (Vec<_>, Vec<_>) = found
            .iter()
            .filter(holds)
            .map(|(path, _)| path)
            .partition(|path| path.components().any(|part| part.as_os_str() == "arch"));
        assert!(!inside.is_empty(), "{}", house.source);
        assert!(outside.is_empty(), "assembly outside of arch: {outside:?}");
    }
}

/// A package may be upgraded while jobs run, so the kernel's path of a program may be out of date.
#[test]
fn where_a_program_is_installed_is_asked_in_one_place() {
    const PLACE: &str = "../coordinator/protocol/src/installed.rs";
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for house in [UPPER.source, LOWER.source] {
        files(&here.join(house), &mut found);
    }
    files(&here.join("../coordinator/src"), &mut found);
    files(&here.join("../coordinator/protocol/src"), &mut found);
    let asks = |(_, text): &&(PathBuf, String)| {
        let code = text.split("#[cfg(test)]").next();
        code.is_some_and(|code| code.contains("current_exe"))
    };
    let places: Vec<&PathBuf> = found.iter().filter(asks).map(|(path, _)| path).collect();
    assert_eq!(places, [&here.join(PLACE)]);
}

#[test]
fn no_circle_of_files_is_large() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    // Below `tests`, a simulated job and an emulated driver are one machine each.
    for folder in crates::folders().filter(|folder| !folder.starts_with("tests")) {
        let source = root.join(folder).join("src");
        // The other ABIs' packages are made of the sources of the first.
        if source.is_dir() {
            let code = Crate::read(&source).unwrap();
            for circle in circles::large(&code) {
                found.push(format!("{folder}: {}", circle.join(", ")));
                found.extend(circles::ties(&code, &circle));
            }
        }
    }
    assert!(found.is_empty(), "circles of files:\n{}", found.join("\n"));
}

#[test]
fn a_large_circle_of_files_is_found() {
    let ring = |names: &[&str]| {
        let next = names.iter().cycle().skip(1);
        let files = names.iter().zip(next);
        let files = files.map(|(name, next)| (*name, format!("use super::{next}::it;")));
        let files: Vec<(&str, String)> = files.collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        circles::large(&Crate::of(&files))
    };
    assert_eq!(ring(&["a", "b", "c"]), Vec::<Vec<String>>::new());
    assert_eq!(ring(&["a", "b", "c", "d"]), [["a", "b", "c", "d"]]);
}

#[test]
fn what_is_wrong_is_found() {
    const HOUSE: House = House {
        source: "",
        floors: &["cellar", "roof"],
    };
    let code = Crate::of(&[
        ("cellar", "use super::roof::Tile;"),
        ("roof", "fn f() { crate::cellar::g(); }"),
        ("garden", ""),
    ]);
    let wrong = upward(&HOUSE, &code);
    assert_eq!(
        wrong,
        [
            "garden stands on no floor",
            "cellar imports crate::roof::Tile"
        ]
    );
    let fine = Crate::of(&[
        (
            "cellar",
            "#[cfg(test)] mod tests { use crate::roof::Tile; }",
        ),
        (
            "roof",
            "use crate::cellar::{self, g}; name!(crate::cellar::h);",
        ),
    ]);
    assert_eq!(upward(&HOUSE, &fine), [""; 0]);
    assert_eq!(fine.imports().count(), 3);
}

#[test]
fn a_circle_of_folders_is_found() {
    let code = Crate::of(&[
        ("roof", ""),
        ("roof::left", ""),
        ("roof::left::tile", "use crate::roof::right::tile::a;"),
        ("roof::right", ""),
        ("roof::right::tile", "use super::super::left::tile::b;"),
    ]);
    assert_eq!(
        cycle(&code),
        Some(vec![
            "roof::left".to_owned(),
            "roof::right".to_owned(),
            "roof::left".to_owned()
        ])
    );
}
