//! LAMMPS, and jobs with next to no memory.

use std::fs;
use std::time::Instant;

use stillpoint_tests::{Failed, place};

use crate::increments::{WAYS, tracked as in_words};
use crate::options::Options;
use crate::programs;
use crate::running::{Medium, RANKS, Running, figure, pause};
use crate::table::Table;

/// Starts a run of LAMMPS with so many steps, and epochs at `how`.
fn melting(how: &[&str], steps: u32) -> Result<Option<Running>, Failed> {
    let Some(program) = programs::lammps() else {
        return Ok(None);
    };
    let input = place::sources().join("applications").join("melt.in");
    let (input, steps) = (input.display().to_string(), steps.to_string());
    let told = [
        "-in",
        &input,
        "-log",
        "log.lammps",
        "-var",
        "every",
        "50",
        "-var",
        "steps",
        &steps,
    ];
    let mut running = Running::begin(Medium::Memory, how, &program, &told)?;
    running.wait("computing", |directory| {
        steps_done(directory.file("log.lammps")) > 1
    })?;
    Ok(Some(running))
}

/// Counts the lines of figures that it has written.
fn steps_done(log: impl AsRef<std::path::Path>) -> usize {
    let text = fs::read_to_string(log).unwrap_or_default();
    let figures = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 3 && words.iter().all(|word| word.parse::<f64>().is_ok())
    };
    text.lines().filter(figures).count()
}

/// Measures epochs of LAMMPS, half a second after one another.
pub fn lammps(options: &Options) -> Result<Vec<Table>, Failed> {
    let columns = [("MB written", 2), ("seconds", 3), ("seconds stopped", 3)];
    let mut table = Table::new("lammps", "4,000 atoms, 2 ranks, to tmpfs", &columns);
    for (way, told) in WAYS {
        let how = [&["--copy", "off"], told].concat();
        let Some(running) = melting(&how, 100_000_000)? else {
            return Ok(vec![]);
        };
        running.checkpoint()?;
        for _ in 0..options.times(5, 20) {
            pause(0.5);
            let said = running.checkpoint()?;
            let figures = [
                figure(&said, "bytes")? / 1e6,
                figure(&said, "seconds")?,
                figure(&said, "stopped_seconds")?,
            ];
            table.add(way, &figures);
        }
    }
    Ok(vec![table])
}

/// Measures 2,000 steps of LAMMPS, minus the time of three epochs in them, with and without `--incremental`.
pub fn tracked(options: &Options) -> Result<Vec<Table>, Failed> {
    let mut table = Table::new(
        "tracking-lammps",
        "LAMMPS, 4,000 atoms: 2,000 steps",
        &[("seconds", 2)],
    );
    for _ in 0..options.times(3, 10) {
        for (way, told) in WAYS {
            let how = [&["--copy", "off"], told].concat();
            let Some(mut running) = melting(&how, 100_000_000)? else {
                return Ok(vec![]);
            };
            let log = running.file("log.lammps");
            let first = steps_done(&log);
            let begun = Instant::now();
            let mut stopped = 0.0;
            for epoch in 1..=3 {
                stopped += figure(&running.checkpoint()?, "stopped_seconds")?;
                let until = first + epoch * 40 / 3;
                running.wait("far enough", |directory| {
                    steps_done(directory.file("log.lammps")) >= until
                })?;
            }
            table.add(in_words(way), &[begun.elapsed().as_secs_f64() - stopped]);
        }
    }
    Ok(vec![table])
}

/// Measures images of two ranks that use only MPI.
pub fn small(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [("KB a rank", 0), ("seconds", 3)];
    let mut table = Table::new(
        "small",
        "2 ranks without memory of their own, to tmpfs",
        &columns,
    );
    for compression in ["none", "lz4", "zstd"] {
        let how = ["--compress", compression];
        let running = Running::start(Medium::Memory, &how, &program, &["0", "hold"])?;
        for _ in 0..options.times(3, 10) {
            let said = running.checkpoint()?;
            let bytes = figure(&said, "bytes")? / f64::from(RANKS);
            table.add(compression, &[bytes / 1e3, figure(&said, "seconds")?]);
        }
        running.end()?;
    }
    Ok(vec![table])
}
