//! The paper's Figures 6 and 7 by real copies: the same snapshots and schedulers.

use std::path::Path;

use serde_json::json;
use stillpoint_gpu_driver::Driver;
use stillpoint_gpu_plan::{Scheduling, StagingPlace};
use stillpoint_gpu_staging::{Device, Settings, Spot, stage};
use stillpoint_multilevel::simulate::Spread;
use stillpoint_multilevel::trace::Trace;
use stillpoint_tests::{Failed, place};

use super::machine::{COPIES, SLOWER, SMALLER, node, open, sources};

const MB: u64 = 1_000_000;

/// The first snapshot of a trace that is used: before it, hardly any of the RTM trace blocks.
const FROM: usize = 400;

/// One scheduler's results in one case: seconds on the paper's machine.
struct Row {
    trace: &'static str,
    free: u64,
    scheduler: &'static str,
    expected: Vec<f64>,
    measured: Vec<f64>,
}

pub fn run(snapshots: usize, out: Option<&Path>) -> Result<(), Failed> {
    let driver = Driver::open().map_err(|error| error.to_string())?;
    let rtm = Trace::rtm(1);
    let synthetic = Trace::synthetic(8, rtm.snapshots().len(), 1);
    let mut rows = Vec::new();
    println!(
        "| trace | free | snapshots | scheduler | expected | measured | off, median | off, largest | over exact, expected | over exact, measured |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, trace) in [("RTM", &rtm), ("synthetic", &synthetic)] {
        for free in [80, 128, 160] {
            let case = case(&driver, name, trace, free * MB, snapshots)?;
            print(&case);
            rows.extend(case);
        }
    }
    let folder = out.map_or_else(|| place::target().join("bench"), Path::to_owned);
    let value: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({ "trace": row.trace, "free": row.free, "scheduler": row.scheduler,
                    "expected_seconds": row.expected, "measured_seconds": row.measured })
        })
        .collect();
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    std::fs::write(folder.join("gpu-staging.json"), json!(value).to_string())
        .map_err(|error| error.to_string())
}

/// Stages some snapshots that block, with every scheduler.
fn case(
    driver: &Driver,
    trace: &'static str,
    of: &Trace,
    free: u64,
    snapshots: usize,
) -> Result<Vec<Row>, Failed> {
    let mut rows: Vec<Row> = Scheduling::ALL
        .iter()
        .map(|scheduling| Row {
            trace,
            free,
            scheduler: scheduling.name(),
            expected: Vec::new(),
            measured: Vec::new(),
        })
        .collect();
    let step = (of.snapshots().len() - FROM) / (4 * snapshots.max(1));
    for sizes in of.snapshots()[FROM..].iter().step_by(step.max(1)) {
        if rows[0].expected.len() == snapshots {
            break;
        }
        // Some ranks do not fit, and others have room: otherwise all schedulers do the same.
        let blocks = sizes.iter().any(|size| *size > free + 10 * MB);
        if !blocks || !sizes.iter().any(|size| *size + 10 * MB < free) {
            continue;
        }
        let mut gpus = open(driver)?;
        let sizes: [u64; 8] = std::array::from_fn(|gpu| sizes[gpu] / SMALLER);
        let sources = sources(&mut gpus, &sizes)?;
        let node = node(&mut gpus, free / SMALLER)?;
        for (scheduling, row) in Scheduling::ALL.into_iter().zip(&mut rows) {
            let settings = Settings {
                scheduling,
                choice: &|_, _| (COPIES, None),
                drain: COPIES,
            };
            let staged = stage(&mut gpus, &node, &sources, &settings);
            let staged = staged.map_err(|error| error.to_string())?;
            let scale = SMALLER as f64 / SLOWER as f64;
            row.expected.push(staged.measured.predicted * scale);
            row.measured.push(staged.measured.seconds * scale);
            staged.give_back(&mut gpus);
        }
        for source in &sources {
            gpus.give_back(Spot {
                place: StagingPlace::Gpu(source.gpu),
                address: source.address,
            });
        }
    }
    Ok(rows)
}

fn print(rows: &[Row]) {
    let Some(exact) = rows.last() else { return };
    let over = |of: &[f64], exact: &[f64]| {
        Spread::of(of.iter().zip(exact).map(|(of, exact)| of / exact)).mean
    };
    for row in rows {
        let off = row.measured.iter().zip(&row.expected);
        let off = Spread::of(off.map(|(measured, expected)| (measured / expected - 1.0).abs()));
        println!(
            "| {} | {} MB | {} | {} | {:.2} ms | {:.2} ms | {:.0} % | {:.0} % | {:.2} | {:.2} |",
            row.trace,
            row.free / MB,
            row.expected.len(),
            row.scheduler,
            1e3 * Spread::of(row.expected.iter().copied()).mean,
            1e3 * Spread::of(row.measured.iter().copied()).mean,
            100.0 * off.median,
            100.0 * off.largest,
            over(&row.expected, &exact.expected),
            over(&row.measured, &exact.measured),
        );
    }
}
