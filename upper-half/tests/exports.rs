//! The library's dynamic symbols against those of the installed Open MPI: nothing missing, nothing invented, and
//! data of the same sizes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_wrappers::openmpi::{INTERNAL, LATER, LIBRARY, OF_LAYERS, PREDEFINED};

/// Defined dynamic symbols with their sizes.
fn symbols(library: &Path) -> BTreeMap<String, usize> {
    let output = Command::new("nm")
        .args(["-D", "-S", "--defined-only"])
        .arg(library)
        .output()
        .expect("nm runs");
    assert!(output.status.success(), "nm {}", library.display());
    String::from_utf8(output.stdout)
        .expect("symbol names are ASCII")
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [_, size, _, name] => Some((name.into(), usize::from_str_radix(size, 16).ok()?)),
                [_, _, name] => Some((name.into(), 0)),
                _ => None,
            }
        })
        .collect()
}

fn ours() -> BTreeMap<String, usize> {
    let test = std::env::current_exe().expect("a test has a path");
    symbols(&test.with_file_name("libstillpoint_upper_openmpi.so"))
}

/// Returns the path of an installed library.
fn installed(name: &str) -> PathBuf {
    let cache = Command::new("/sbin/ldconfig")
        .arg("-p")
        .output()
        .expect("ldconfig runs");
    let cache = String::from_utf8_lossy(&cache.stdout).to_string();
    let line = cache
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name));
    let path = line.and_then(|line| line.split("=> ").nth(1));
    path.unwrap_or_else(|| panic!("{name} is installed")).into()
}

fn open_mpi() -> BTreeMap<String, usize> {
    symbols(&installed(LIBRARY))
}

/// The same, with the libraries below it.
fn open_mpi_and_below() -> BTreeMap<String, usize> {
    let below = ["libopen-rte.so.40", "libopen-pal.so.40"];
    let all = [LIBRARY].into_iter().chain(below);
    all.flat_map(|name| symbols(&installed(name))).collect()
}

/// The names that a library needs of others.
fn needed(library: &Path) -> Vec<String> {
    let output = Command::new("nm")
        .args(["-D", "--undefined-only"])
        .arg(library)
        .output()
        .expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("symbol names are ASCII");
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    names.map(str::to_owned).collect()
}

fn is_mpi(name: &str) -> bool {
    ["MPI_", "PMPI_", "MPIX_", "PMPIX_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[test]
fn every_function_of_the_installed_mpi_is_exported_and_no_other() {
    let wanted: Vec<String> = open_mpi().into_keys().filter(|name| is_mpi(name)).collect();
    let found: Vec<String> = ours().into_keys().filter(|name| is_mpi(name)).collect();
    // A program that a later release was linked with calls these too.
    let later = |name: &str| {
        let own = name.strip_prefix('P').unwrap_or(name);
        LATER.contains(&own)
    };
    for name in LATER {
        let own = [name.to_owned(), format!("P{name}")];
        assert!(own.iter().all(|name| found.contains(name)), "{name}");
    }
    let missing: Vec<&String> = wanted.iter().filter(|name| !found.contains(name)).collect();
    let invented: Vec<&String> = found
        .iter()
        .filter(|name| !wanted.contains(name) && !later(name))
        .collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
    assert!(invented.is_empty(), "invented: {invented:?}");
}

#[test]
fn predefined_handles_are_data_of_the_same_size() {
    let (ours, theirs) = (ours(), open_mpi());
    for entry in PREDEFINED {
        let symbol = entry.symbol.to_str().expect("ASCII");
        assert_eq!(
            theirs.get(symbol),
            Some(&entry.bytes),
            "{symbol} in Open MPI"
        );
        assert_eq!(ours.get(symbol), Some(&entry.bytes), "{symbol} in ours");
    }
}

#[test]
fn internal_functions_and_data_are_the_installed_ones_and_no_other() {
    let (ours, theirs) = (ours(), open_mpi_and_below());
    for name in INTERNAL.iter().chain(&OF_LAYERS) {
        assert!(theirs.contains_key(*name), "{name} in Open MPI");
        assert!(ours.contains_key(*name), "{name} in ours");
    }
    let internal = |name: &&String| name.starts_with("ompi_") || name.starts_with("opal_");
    for name in ours.keys().filter(internal) {
        assert!(theirs.contains_key(name), "{name} in Open MPI");
    }
}

#[test]
fn data_for_fortrans_layers_has_the_installed_sizes() {
    let (ours, theirs) = (ours(), open_mpi_and_below());
    let is_data = |name: &&String| {
        [
            "mpi_fortran_",
            "ompi_registered_",
            "ompi_errcode",
            "opal_list_",
        ]
        .iter()
        .any(|beginning| name.starts_with(beginning))
    };
    let data: Vec<&String> = theirs.keys().filter(is_data).collect();
    let mut compared = 0;
    for name in data.iter().filter(|name| ours.contains_key(**name)) {
        assert_eq!(ours[*name], theirs[*name], "{name}");
        compared += 1;
    }
    assert!(compared > 10, "{compared} were compared");
}

/// Names that no program needs.
const OF_ITS_OWN_TESTS: [&str; 2] = ["mpi_conversion_fn_null_f", "OMPI_TEST_FORTRAN_CONSTANTS"];

#[test]
fn every_name_that_a_layer_or_a_fortran_program_needs_is_exported() {
    let (ours, theirs) = (ours(), open_mpi_and_below());
    let mut wanted: Vec<String> = open_mpi().into_keys().collect();
    let of_programs = |name: &str| {
        let begins = ["mpi_", "OMPI_"].iter().any(|it| name.starts_with(it));
        begins && !OF_ITS_OWN_TESTS.contains(&name)
    };
    wanted.retain(|name| of_programs(name));
    for layer in [
        "libmpi_mpifh.so.40",
        "libmpi_usempif08.so.40",
        "libmpi_cxx.so.40",
    ] {
        let needed = needed(&installed(layer));
        assert!(!needed.is_empty(), "{layer}");
        wanted.extend(needed.into_iter().filter(|it| theirs.contains_key(it)));
    }
    assert!(wanted.len() > 400, "{} names", wanted.len());
    wanted.retain(|name| !ours.contains_key(name));
    assert!(wanted.is_empty(), "missing: {wanted:?}");
}

#[test]
fn no_predefined_handle_of_the_installed_mpi_is_left_out() {
    let sizes = [0x100, 0x200, 0x400, 0x600, 0x800];
    let ours = ours();
    for (symbol, size) in open_mpi() {
        let handle = symbol.starts_with("ompi_mpi_")
            || [
                "ompi_request_null",
                "ompi_message_null",
                "ompi_message_no_proc",
            ]
            .contains(&symbol.as_str());
        if handle && sizes.contains(&size) {
            assert_eq!(ours.get(&symbol), Some(&size), "{symbol}");
        }
    }
}

/// Functions that are written by hand and use an address, but never the memory there.
const ADDRESSES_ONLY: [&str; 5] = [
    "MPI_Address",
    "MPI_Get_address",
    "MPI_Free_mem",
    "MPI_Win_detach",
    "MPI_Buffer_detach",
];

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            text.push_str(&std::fs::read_to_string(path).expect("a source"));
        }
    }
}

/// Generated stubs do so by themselves, or are not made.
#[test]
fn every_function_by_hand_that_is_given_a_buffer_looks_for_a_gpus_memory() {
    let mut text = String::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut text,
    );
    let called: Vec<&str> = text.split("devices::").skip(1).collect();
    // Lists of functions that a macro makes, by their first words.
    let lists = [
        "blocking_sends! {",
        "nonblocking_sends! {",
        "persistent_sends! {",
    ];
    let mut made: Vec<&str> = Vec::new();
    for list in lists {
        let found = made.len();
        let begin = format!("\n{list}");
        let behind = text.split(&begin).skip(1);
        made.extend(behind.map(|behind| behind.split_once('}').expect("its end").0));
        assert!(made.len() > found, "{list} is nowhere");
    }
    let table = include_str!("../../wrappers/table/functions.txt");
    let mut seen = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let is_asked = words[2] == "written" && line.contains(":buffer");
        if !is_asked || ADDRESSES_ONLY.contains(&words[0]) {
            continue;
        }
        let name = format!("\"{}\"", words[0]);
        let looks = |code: &&str| code.get(..90).unwrap_or(code).contains(&name);
        let is_made = made.iter().any(|list| list.contains(&name));
        assert!(is_made || called.iter().any(looks), "{name} does not look");
        seen += 1;
    }
    assert!(seen > 20, "{seen} functions were found");
}
