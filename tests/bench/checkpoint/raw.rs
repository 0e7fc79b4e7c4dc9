//! The machine's speed without Stillpoint: two processes or threads that write, copy or read as many bytes.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use stillpoint_tests::{Failed, ensure};

use crate::running::{Medium, RANKS};

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    block: &'static str,
    direct: bool,
}

impl Writing {
    /// Returns all ways; tmpfs in this kernel may not support O_DIRECT.
    pub fn all(medium: Medium) -> Vec<Writing> {
        let blocks = ["256k", "1m", "4m", "16m"];
        let ways = blocks
            .into_iter()
            .flat_map(|block| [false, true].map(|direct| Writing { block, direct }));
        ways.filter(|way| medium == Medium::Disk || !way.direct)
            .collect()
    }

    pub fn describe(self) -> String {
        let direct = if self.direct { ", O_DIRECT" } else { "" };
        format!("blocks of {}{direct}", self.block)
    }
}

/// Returns the seconds in which two processes write so many megabytes each to files of their own, and force them to the
/// disk.
pub fn write(medium: Medium, way: Writing, megabytes: u64) -> Result<f64, Failed> {
    let scratch = medium.directory("fio")?;
    let mut fio = Command::new("fio");
    fio.args([
        "--name=write",
        "--rw=write",
        "--end_fsync=1",
        "--fallocate=none",
        "--unlink=1",
    ])
    .args([
        "--group_reporting",
        "--output-format=json",
        "--ioengine=psync",
    ])
    .arg(format!("--numjobs={RANKS}"))
    .arg(format!("--size={megabytes}m"))
    .arg(format!("--bs={}", way.block))
    .arg(format!("--direct={}", u8::from(way.direct)))
    .arg("--directory")
    .arg(scratch.path());
    let output = fio
        .output()
        .map_err(|error| format!("cannot start fio: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{fio:?}: {complaint}");
    let said: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("fio: {error}"))?;
    let write = &said["jobs"][0]["write"];
    let wrote = write["io_bytes"].as_u64().unwrap_or_default();
    ensure!(
        wrote == (megabytes << 20) * u64::from(RANKS),
        "fio wrote {wrote} bytes"
    );
    // Milliseconds until the slowest process has forced its file to the disk.
    let runtime = write["runtime"].as_f64();
    Ok(runtime.ok_or("fio does not say how long it took")? / 1000.0)
}

/// Finds the fastest way to write, with a quarter of so many megabytes.
pub fn best(medium: Medium, megabytes: u64) -> Result<Writing, Failed> {
    let mut best: Option<(f64, Writing)> = None;
    for way in Writing::all(medium) {
        let took = write(medium, way, megabytes / 4)?;
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, way));
        }
    }
    best.map(|(_, way)| way)
        .ok_or_else(|| "no way to write".to_owned())
}

/// Runs as many threads as there are ranks, and returns the time until all have finished.
fn in_parallel<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), Failed> + Sync,
) -> Result<f64, Failed> {
    let began = Instant::now();
    let work = &work;
    let results: Vec<Result<(), Failed>> = thread::scope(|scope| {
        let threads: Vec<_> = items
            .iter()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a thread has died".to_owned()))
        });
        ended.collect()
    });
    let took = began.elapsed();
    results.into_iter().collect::<Result<Vec<()>, Failed>>()?;
    Ok(took.as_secs_f64())
}

/// Returns the seconds in which two threads copy so many megabytes each into new memory.
pub fn copy(megabytes: usize) -> Result<f64, Failed> {
    let sources = vec![vec![0x5au8; megabytes << 20]; RANKS as usize];
    in_parallel(&sources, |source| {
        black_box(source.clone());
        Ok(())
    })
}

/// Returns the seconds in which two threads read a file each into new memory.
pub fn read(files: &[PathBuf]) -> Result<f64, Failed> {
    in_parallel(files, |path| {
        let failed = |error| format!("{}: {error}", path.display());
        let length = fs::metadata(path).map_err(failed)?.len() as usize;
        let mut bytes = Vec::with_capacity(length);
        let mut file = File::open(path).map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        black_box(bytes);
        Ok(())
    })
}

/// Returns the seconds that `mpirun` takes to start that program natively, and to end it.
pub fn launch(program: &Path) -> Result<f64, Failed> {
    launch_of(RANKS, program)
}

/// Returns the same with so many ranks.
pub fn launch_of(ranks: u32, program: &Path) -> Result<f64, Failed> {
    let scratch = Medium::Memory.directory("native")?;
    // The program ends when it sees this file.
    let go = scratch.path().join("go");
    fs::write(&go, b"").map_err(|error| format!("{}: {error}", go.display()))?;
    let mut command = stillpoint_tests::job::mpirun(ranks);
    command.env("TRIAL_DIR", scratch.path());
    let began = Instant::now();
    let output = command.arg(program).args(["0", "hold"]).output();
    let output = output.map_err(|error| format!("cannot start mpirun: {error}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(began.elapsed().as_secs_f64())
}
