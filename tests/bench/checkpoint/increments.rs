//! Incremental epochs, and the cost of tracking.

use std::path::Path;

use stillpoint_tests::Failed;

use crate::applications;
use crate::options::Options;
use crate::programs;
use crate::running::{Medium, Running, figure, now, pause};
use crate::table::Table;

/// The kinds of epochs, and the options of `run` for each.
pub const WAYS: [(&str, &[&str]); 3] = [
    ("full", &[]),
    ("page-based", &["--incremental=pages"]),
    ("hash-based", &["--incremental=blocks"]),
];

/// A program that rewrites a tenth of its pages between two epochs, half of them with their old content.
pub fn rewritten(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [("MB written", 1), ("seconds", 3), ("seconds stopped", 3)];
    let mut table = Table::new("increments", "2 ranks, 512 MiB each, to tmpfs", &columns);
    let mut jobs = vec![];
    for (way, told) in WAYS {
        let how = [&["--copy", "off", "--compress", "none"], told].concat();
        let running = Running::start(Medium::Memory, &how, &program, &["512", "rewrite"])?;
        // The first epoch is full in any case.
        running.checkpoint()?;
        jobs.push((way, running));
    }
    for _ in 0..options.times(5, 20) {
        for (way, running) in &mut jobs {
            running.ask_program()?;
            let said = running.checkpoint()?;
            let figures = [
                figure(&said, "bytes")? / 1e6,
                figure(&said, "seconds")?,
                figure(&said, "stopped_seconds")?,
            ];
            table.add(way, &figures);
        }
    }
    jobs.into_iter()
        .try_for_each(|(_, running)| running.end())?;
    Ok(vec![table])
}

/// Measures a loop over all memory between epochs, with and without the kernel's tracking of writes.
pub fn tracking(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [
        ("ms a lap, middle one", 2),
        ("ms, the first after an epoch", 2),
        ("mean lap, % of that without", 1),
    ];
    let mut table = Table::new(
        "tracking",
        "stream-like loop, 2 ranks, 192 MiB each",
        &columns,
    );
    for _ in 0..options.times(5, 20) {
        let mut without = None;
        for (way, told) in WAYS {
            let (middle, first, all) = triad(&program, told)?;
            let without = *without.get_or_insert(all);
            table.add(
                tracked(way),
                &[middle * 1e3, first * 1e3, 100.0 * all / without],
            );
        }
    }
    Ok(vec![table]
        .into_iter()
        .chain(applications::tracked(options)?)
        .collect())
}

/// Returns the options of `run`.
pub fn tracked(way: &str) -> &'static str {
    match way {
        "full" => "without `--incremental`",
        "page-based" => "`--incremental=pages`",
        _ => "`--incremental=blocks`",
    }
}

/// Returns the seconds of a lap: the median of all, the median of each rank's first after an epoch, and the mean, over some seconds with
/// an epoch each.
fn triad(program: &Path, told: &[&str]) -> Result<(f64, f64, f64), Failed> {
    let how = [&["--copy", "off"], told].concat();
    let running = Running::start(Medium::Memory, &how, program, &["192", "triad"])?;
    let (mut all, mut first) = (vec![], vec![]);
    for _ in 0..3 {
        running.checkpoint()?;
        let begun = now();
        pause(1.0);
        // Laps that the epoch did not interrupt.
        let laps: Vec<(f64, f64)> = running.laps();
        let laps = laps
            .into_iter()
            .filter(|(end, took)| end - took > begun - 0.05);
        let mut laps: Vec<(f64, f64)> = laps.collect();
        laps.sort_by(|one, other| one.0.total_cmp(&other.0));
        first.extend(laps.iter().take(2).map(|(_, took)| *took));
        all.extend(laps.iter().map(|(_, took)| *took));
    }
    running.end()?;
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let median = |laps| crate::table::Figures(laps).median().unwrap_or_default();
    Ok((median(all), median(first), mean))
}
