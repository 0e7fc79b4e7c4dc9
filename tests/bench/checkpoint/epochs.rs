//! Full epochs of incompressible memory, to disk and to tmpfs; restarts; and images that are written while the application runs.

use stillpoint_tests::Failed;

use crate::options::Options;
use crate::programs;
use crate::raw;
use crate::running::{Medium, RANKS, Running, figure, now, pause};
use crate::table::Table;

/// Megabytes of each rank.
const MEMORY: u64 = 1024;
const ALL: f64 = (MEMORY << 20) as f64 * RANKS as f64;

/// Measures full epochs with `--copy off`, and restarts from them, in turn with the machine's speed alone.
pub fn full(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let megabytes = MEMORY.to_string();
    let columns = [("seconds", 2), ("GB/s", 2)];
    let mut epochs = Table::new("full", "2 ranks, 1 GiB each", &columns);
    let mut restarts = Table::new("restart", "2 ranks, 1 GiB each", &columns);
    for medium in Medium::BOTH {
        let name = medium.name();
        let best = raw::best(medium, MEMORY)?;
        // Only the newest epoch is kept: two would need twice the room.
        let how = ["--copy", "off", "--keep", "1", "--compress", "none"];
        let mut running = Running::start(medium, &how, &program, &[&megabytes, "hold"])?;
        for _ in 0..options.times(2, 5) {
            let row = format!("{name}: two processes of fio, {}", best.describe());
            let took = raw::write(medium, best, MEMORY)?;
            epochs.add(&row, &[took, ALL / took / 1e9]);
            if medium == Medium::Memory {
                let took = raw::copy(MEMORY as usize)?;
                epochs.add("two copies of memory", &[took, ALL / took / 1e9]);
            }
            let said = running.checkpoint()?;
            let (bytes, took) = (figure(&said, "bytes")?, figure(&said, "seconds")?);
            epochs.add(&format!("{name}: an epoch"), &[took, bytes / took / 1e9]);
            let stopped = figure(&said, "stopped_seconds")?;
            let row = format!("{name}: of that the application stands still");
            epochs.add(&row, &[stopped, bytes / stopped / 1e9]);
        }
        for _ in 0..options.times(2, 5) {
            let said = running.suspend()?;
            let bytes = figure(&said, "bytes")?;
            let took = raw::read(&running.images())?;
            restarts.add(&format!("{name}: two readers"), &[took, bytes / took / 1e9]);
            let took = running.restart(&[])?.as_secs_f64();
            restarts.add(&format!("{name}: a restart"), &[took, bytes / took / 1e9]);
        }
        running.end()?;
    }
    let mut small = Running::start(Medium::Memory, &[], &program, &["0", "hold"])?;
    for _ in 0..options.times(2, 5) {
        small.suspend()?;
        restarts.add(
            "a restart of a job without memory",
            &[small.restart(&[])?.as_secs_f64()],
        );
        restarts.add(
            "`mpirun` that starts it natively",
            &[raw::launch(&program)?],
        );
    }
    small.end()?;
    Ok(vec![epochs, restarts])
}

/// Returns the laps a second of all ranks that ended in that time.
fn rate(laps: &[(f64, f64)], from: f64, to: f64, stopped: f64) -> f64 {
    let count = laps
        .iter()
        .filter(|(end, _)| (from..to).contains(end))
        .count();
    count as f64 / (to - from - stopped)
}

/// Measures how long the application stands still if images are written in the background, and how much slower it is
/// meanwhile.
pub fn copies(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [
        ("ms stopped", 1),
        ("seconds in all", 2),
        ("stopped, % of all", 1),
        ("slower meanwhile, %", 0),
    ];
    let mut table = Table::new(
        "copies",
        "2 ranks, 512 MiB each, which both compute, to tmpfs",
        &columns,
    );
    for copy in ["off", "on"] {
        let how = ["--copy", copy, "--keep", "1", "--compress", "none"];
        let running = Running::start(Medium::Memory, &how, &program, &["512", "sweep"])?;
        pause(0.5);
        for _ in 0..options.times(4, 20) {
            let before = now();
            pause(1.0);
            let begun = now();
            let said = running.checkpoint()?;
            let ended = now();
            let laps = running.laps();
            let stopped = figure(&said, "stopped_seconds")?;
            let alone = rate(&laps, before, begun, 0.0);
            let meanwhile = rate(&laps, begun, ended, stopped);
            let seconds = figure(&said, "seconds")?;
            let mut figures = vec![stopped * 1e3, seconds, 100.0 * stopped / seconds];
            if copy == "on" {
                figures.push(100.0 * (1.0 - meanwhile / alone));
            }
            table.add(&format!("`--copy {copy}`"), &figures);
        }
        running.end()?;
    }
    Ok(vec![table])
}
