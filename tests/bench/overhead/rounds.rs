//! Short measures, taken in turn: jobs of all ways exist side by side, one measures for some milliseconds, then the next.
//!
//! The jobs of a launch have the same history. Calibration would change the buffers of the job that does it, so a job of its
//! own calibrates. Each job's first round, in which its buffers grow, does not count.

use std::time::{Duration, Instant};

use stillpoint_tests::Failed;

use crate::options::Options;
use crate::programs::Programs;
use crate::progress::Progress;
use crate::row::Row;
use crate::settings::{Group, Setting};
use crate::turns;
use crate::way::Way;
use crate::worker::Worker;

/// The least native time of a measure. A measure of many parts takes longer.
const SHORT: Duration = Duration::from_millis(5);
const OF_PARTS: Duration = Duration::from_millis(20);
/// The fewest rounds of a launch that count, whatever the time: each way comes before and after each other.
const FEWEST: u32 = 2;

/// Measures all settings; `time` is for all launches together.
pub fn measure(
    settings: Vec<Setting>,
    programs: &Programs,
    options: &Options,
    time: Duration,
) -> Result<Vec<Row>, Failed> {
    let mut rows: Vec<Row> = settings.into_iter().map(Row::new).collect();
    if rows.is_empty() {
        return Ok(rows);
    }
    let calls = calibrate(&rows, &mut Worker::start(Way::Native, programs)?)?;
    let launches = options
        .rounds
        .map_or(options.launches, |rounds| rounds.min(options.launches));
    let begun = Instant::now();
    for launch in 0..launches {
        let goes_on = |round: u32| match options.rounds {
            // Rounds are spread evenly, and the first launches have one more.
            Some(rounds) => round < (rounds + launches - 1 - launch) / launches,
            None => round < FEWEST || begun.elapsed() < time * (launch + 1) / launches,
        };
        let mut progress = Progress::new(format!("launch {} of {launches}", launch + 1));
        let mut workers = start(options, programs, launch)?;
        for (row, calls) in rows.iter_mut().zip(&calls) {
            row.begin_launch();
            pass(row, *calls, &mut workers, 0)?;
        }
        let mut round = 0;
        while goes_on(round) {
            for (row, calls) in rows.iter_mut().zip(&calls) {
                let figures = pass(row, *calls, &mut workers, round)?;
                row.add(&figures);
            }
            round += 1;
            progress.say(&format!("round {round}"));
        }
    }
    Ok(rows)
}

/// Starts a job of every way. The first one is different each time.
fn start(
    options: &Options,
    programs: &Programs,
    launch: u32,
) -> Result<Vec<(Way, Worker)>, Failed> {
    let ways = options.all_ways();
    turns::order(ways.len(), launch as usize)
        .into_iter()
        .map(|turn| Ok((ways[turn], Worker::start(ways[turn], programs)?)))
        .collect()
}

/// Takes one figure of every way that the setting concerns.
fn pass(
    row: &Row,
    calls: u32,
    workers: &mut [(Way, Worker)],
    round: u32,
) -> Result<Vec<(Way, f64)>, Failed> {
    let mut figures = vec![];
    for turn in turns::order(workers.len(), round as usize) {
        let (way, worker) = &mut workers[turn];
        if row.setting.group.concerns(*way) {
            let figure = worker.measure(row.setting.measure, row.setting.size, calls)?;
            figures.push((*way, figure));
        }
    }
    Ok(figures)
}

/// Finds the number of repetitions with which each setting takes long enough natively.
fn calibrate(rows: &[Row], native: &mut Worker) -> Result<Vec<u32>, Failed> {
    let mut progress = Progress::new("calibration".to_owned());
    let mut all = vec![];
    for setting in rows.iter().map(|row| &row.setting) {
        let long = match setting.group {
            Group::Overlap => OF_PARTS,
            _ => SHORT,
        };
        let mut calls = 2;
        // The first time does not count: the job starts, and buffers grow.
        native.measure(setting.measure, setting.size, calls)?;
        while shortest(native, setting, calls)? < long && calls < 1 << 24 {
            calls *= 2;
        }
        all.push(calls);
        progress.say(&setting.label);
    }
    Ok(all)
}

/// Returns the shortest of a few times, since a disturbance of the machine only makes them longer.
fn shortest(worker: &mut Worker, setting: &Setting, calls: u32) -> Result<Duration, Failed> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        worker.measure(setting.measure, setting.size, calls)?;
        best = best.min(begun.elapsed());
    }
    Ok(best)
}
