//! The C programs of the bench, compiled.

use std::fs;
use std::path::PathBuf;

use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::{Failed, ensure, place};

/// Where the compiled programs are.
pub struct Programs {
    /// What they are built for, and started by.
    pub mpi: Mpi,
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

/// Compiles them all for an MPI: that takes a second or two.
pub fn build(mpi: Mpi) -> Result<Programs, Failed> {
    let folder = place::target().join("bench").join("programs");
    let folder = match mpi.is_own() {
        true => folder,
        false => folder.join(&mpi.name),
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let compiled = |name: &str, flags: &[&str], sources: &[&str]| {
        let made = folder.join(name);
        let mut compiler = mpi.compiler("mpicc");
        compiler
            .args(["-std=gnu11", "-Wall", "-Wextra", "-O2", "-o"])
            .arg(&made)
            .args(flags);
        compiler.args(sources.iter().map(|source| this_bench().join(source)));
        let output = compiler
            .args(mpi.linked("c"))
            .arg("-lm")
            .output()
            .map_err(|error| format!("cannot start mpicc: {error}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{compiler:?}: {complaint}");
        Ok(made)
    };
    let (worker, start) = (
        compiled("worker", &[], &WORKER)?,
        compiled("start", &[], &["start.c"])?,
    );
    let (shared, source) = (&["-shared", "-fPIC"], &["count_calls.c"]);
    let count_calls = compiled("libcount_calls.so", shared, source)?;
    Ok(Programs {
        mpi,
        worker,
        start,
        count_calls,
    })
}

/// The programs' sources and inputs.
pub fn this_bench() -> PathBuf {
    place::sources().join("bench").join("overhead")
}
