//! The C programs of the bench, compiled.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use stillpoint_tests::{Failed, ensure, place};

/// Where the compiled programs are.
pub struct Programs {
    pub worker: PathBuf,
    pub start: PathBuf,
    pub count_calls: PathBuf,
}

const WORKER: [&str; 6] = [
    "worker.c",
    "collectives.c",
    "overlap.c",
    "messages.c",
    "local.c",
    "spectral.c",
];

/// Compiles them all: that takes a second or two.
pub fn build() -> Result<Programs, Failed> {
    let folder = place::target().join("bench").join("programs");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let compiled = |name: &str, flags: &[&str], sources: &[&str]| {
        let made = folder.join(name);
        let mut compiler = Command::new("mpicc");
        compiler
            .args(["-std=gnu11", "-Wall", "-Wextra", "-O2", "-o"])
            .arg(&made)
            .args(flags);
        compiler.args(sources.iter().map(|source| this_bench().join(source)));
        let output = compiler
            .arg("-lm")
            .output()
            .map_err(|error| format!("cannot start mpicc: {error}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{compiler:?}: {complaint}");
        Ok(made)
    };
    Ok(Programs {
        worker: compiled("worker", &[], &WORKER)?,
        start: compiled("start", &[], &["start.c"])?,
        count_calls: compiled(
            "libcount_calls.so",
            &["-shared", "-fPIC"],
            &["count_calls.c"],
        )?,
    })
}

/// The programs' sources and inputs.
pub fn this_bench() -> PathBuf {
    place::sources().join("bench").join("overhead")
}
