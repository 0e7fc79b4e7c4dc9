//! The library's dynamic symbols against those of the MPICH that `ci/setup` unpacks: every symbol that a program, or MPICH's Fortran and C++ layers, can ask
//! for is here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_wrappers::mpich::{INTERNAL, OF_LAYERS};

/// Dynamic symbols, defined or not.
fn symbols(library: &Path, which: &str) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", which])
        .arg(library)
        .output()
        .expect("nm runs");
    assert!(output.status.success(), "nm {}", library.display());
    let text = String::from_utf8(output.stdout).expect("symbol names are ASCII");
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    names.map(str::to_owned).collect()
}

/// The folder for cargo's build outputs.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("a folder").to_path_buf()
}

fn ours() -> BTreeSet<String> {
    let library = built().join("libstillpoint_upper_mpich.so");
    symbols(&library, "--defined-only")
}

fn of_mpich(name: &str, which: &str) -> BTreeSet<String> {
    let libraries = built().join("../../mpis/mpich-debian/lib");
    symbols(&libraries.join(name), which)
}

fn is_mpi(name: &str) -> bool {
    ["MPI_", "PMPI_", "MPIX_", "PMPIX_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn missing(wanted: &BTreeSet<String>) -> Vec<String> {
    let ours = ours();
    wanted.difference(&ours).cloned().collect()
}

#[test]
fn every_function_of_mpich_is_exported() {
    let mut wanted = of_mpich("libmpich.so.12", "--defined-only");
    // Its `mpi.h` calls one function of another kind.
    wanted.retain(|name| is_mpi(name) || name == "MPIR_Dup_fn");
    assert!(wanted.len() > 1000, "{} names", wanted.len());
    assert_eq!(missing(&wanted), Vec::<String>::new());
}

#[test]
fn whatever_its_fortran_and_cxx_layers_ask_for_is_exported() {
    for layer in ["libmpichfort.so.12", "libmpichcxx.so.12"] {
        let mut wanted = of_mpich(layer, "--undefined-only");
        wanted.retain(|name| is_mpi(name) || name.starts_with("MPII_"));
        assert!(wanted.len() > 200, "{layer}: {} names", wanted.len());
        assert_eq!(missing(&wanted), Vec::<String>::new(), "{layer}");
    }
}

#[test]
fn names_by_hand_are_names_of_mpich() {
    let (theirs, ours) = (of_mpich("libmpich.so.12", "--defined-only"), ours());
    for name in OF_LAYERS.iter().chain(&INTERNAL) {
        assert!(theirs.contains(*name), "{name} of MPICH");
        assert!(ours.contains(*name), "{name}");
    }
}
