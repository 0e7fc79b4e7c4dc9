//! The C programs of the bench, compiled.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::{Failed, ensure, place};

use crate::options::{Options, Words};
use crate::way::Way;

/// The paths of the compiled programs.
pub struct Programs {
    /// The MPI that they are built for, and that starts them.
    pub mpi: Mpi,
    pub worker: PathBuf,
    /// The worker behind another checkpointer's command; empty if none is measured.
    other: Vec<OsString>,
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

/// Compiles all programs, in a second or two.
pub fn build(options: &Options) -> Result<Programs, Failed> {
    let mpi = options.mpi()?;
    let folder = place::target().join("bench").join("programs");
    let folder = match mpi.is_own() {
        true => folder,
        false => folder.join(&mpi.name),
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let compiled = |name: &str, flags: &[&str], sources: &[&str]| {
        let made = folder.join(name);
        compile(
            mpi.compiler("mpicc"),
            flags,
            sources,
            &mpi.linked("c"),
            &made,
        )?;
        Ok::<_, Failed>(made)
    };
    let (worker, start) = (
        compiled("worker", &[], &WORKER)?,
        compiled("start", &[], &["start.c"])?,
    );
    let (shared, source) = (&["-shared", "-fPIC"], &["count_calls.c"]);
    let count_calls = compiled("libcount_calls.so", shared, source)?;
    Ok(Programs {
        other: other(options, &worker, &folder)?,
        mpi,
        worker,
        start,
        count_calls,
    })
}

/// Returns the worker under another checkpointer, compiled for it if needed.
fn other(options: &Options, worker: &Path, folder: &Path) -> Result<Vec<OsString>, Failed> {
    let Some(Words(before)) = &options.other else {
        return Ok(vec![]);
    };
    let worker = match &options.other_compiler {
        None => worker.to_owned(),
        Some(Words(words)) => {
            let (made, mut compiler) = (folder.join("worker-other"), Command::new(&words[0]));
            compiler.args(&words[1..]);
            compile(compiler, &[], &WORKER, &[], &made)?;
            made
        }
    };
    let before = before.iter().map(OsString::from);
    Ok(before.chain([worker.into()]).collect())
}

fn compile(
    mut compiler: Command,
    flags: &[&str],
    sources: &[&str],
    linked: &[String],
    made: &Path,
) -> Result<(), Failed> {
    compiler
        .args(["-std=gnu11", "-Wall", "-Wextra", "-O2", "-o"])
        .arg(made)
        .args(flags)
        .args(sources.iter().map(|source| this_bench().join(source)))
        .args(linked)
        .arg("-lm");
    let output = compiler
        .output()
        .map_err(|error| format!("cannot start {:?}: {error}", compiler.get_program()))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{compiler:?}: {complaint}");
    Ok(())
}

impl Programs {
    /// Returns the command of the worker in a way.
    pub fn worker(&self, way: Way) -> Vec<OsString> {
        match way {
            Way::Other => self.other.clone(),
            _ => vec![self.worker.clone().into()],
        }
    }
}

/// Returns the folder of the programs' sources and inputs.
pub fn this_bench() -> PathBuf {
    place::sources().join("bench").join("overhead")
}
