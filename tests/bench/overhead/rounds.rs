//! Short measures, taken in turn: jobs of all ways stand side by side, one measures for some milliseconds, then the next.

use std::time::{Duration, Instant};

use stillpoint_tests::Failed;

use crate::options::Options;
use crate::programs::Programs;
use crate::progress::Progress;
use crate::row::Row;
use crate::settings::Setting;
use crate::way::Way;
use crate::worker::Worker;

/// How long one measure takes, at least.
const SHORT: Duration = Duration::from_millis(5);
/// The fewest rounds of a launch, whatever the time.
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
    let mut calls = None;
    let launches = options
        .rounds
        .map_or(options.launches, |rounds| rounds.min(options.launches));
    for launch in 0..launches {
        let begun = Instant::now();
        let mut workers = options
            .all_ways()
            .into_iter()
            .map(|way| Ok((way, Worker::start(way, &programs.worker)?)))
            .collect::<Result<Vec<_>, Failed>>()?;
        if calls.is_none() {
            calls = Some(calibrate(&rows, &mut workers[0].1)?);
        }
        let calls = calls.as_deref().unwrap_or_default();
        let mut progress = Progress::new(format!("launch {} of {launches}", launch + 1));
        let mut round = 0;
        loop {
            let goes_on = match options.rounds {
                // Spread evenly, the first launches have one more.
                Some(rounds) => round < (rounds + launches - 1 - launch) / launches,
                None => round < FEWEST || begun.elapsed() < time / launches,
            };
            if !goes_on {
                break;
            }
            for (row, calls) in rows.iter_mut().zip(calls) {
                pass(row, *calls, &mut workers)?;
            }
            round += 1;
            // What came first comes last: no way profits from its place.
            workers.reverse();
            progress.say(&format!("round {round}"));
        }
    }
    Ok(rows)
}

/// One figure of every way that the setting concerns.
fn pass(row: &mut Row, calls: u32, workers: &mut [(Way, Worker)]) -> Result<(), Failed> {
    let mut round = vec![];
    for (way, worker) in workers {
        if row.setting.group.concerns(*way) {
            let figure = worker.measure(row.setting.measure, row.setting.size, calls)?;
            round.push((*way, figure));
        }
    }
    row.add(&round);
    Ok(())
}

/// How often each setting is to be repeated, so that it takes long enough natively.
fn calibrate(rows: &[Row], native: &mut Worker) -> Result<Vec<u32>, Failed> {
    let mut progress = Progress::new("calibration".to_owned());
    let mut all = vec![];
    for row in rows {
        let mut calls = 2;
        loop {
            let begun = Instant::now();
            native.measure(row.setting.measure, row.setting.size, calls)?;
            if begun.elapsed() >= SHORT || calls >= 1 << 24 {
                break;
            }
            calls *= 2;
        }
        all.push(calls);
        progress.say(&row.setting.label);
    }
    Ok(all)
}
