//! The programs of the bench.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use stillpoint_tests::{Failed, ensure, place};

/// Compiles the program with memory of a given size, in about a second.
pub fn memory() -> Result<PathBuf, Failed> {
    let folder = place::target().join("bench").join("programs");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let made = folder.join("memory");
    let source = place::sources().join("bench").join("checkpoint");
    let mut compiler = Command::new("mpicc");
    compiler
        .args(["-std=gnu11", "-Wall", "-Wextra", "-O2", "-o"])
        .arg(&made)
        .arg(source.join("memory.c"));
    let output = compiler
        .output()
        .map_err(|error| format!("cannot start mpicc: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{compiler:?}: {complaint}");
    Ok(made)
}

/// Returns LAMMPS, if it is installed.
pub fn lammps() -> Option<PathBuf> {
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search)
        .map(|folder| folder.join("lmp"))
        .find(|path| path.is_file())
}
