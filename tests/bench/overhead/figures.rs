//! Results as figures.

use stillpoint_multilevel::chart::{Axis, Chart, Mark, Series};

use crate::options::Options;
use crate::row::Row;
use crate::settings::Group;
use crate::way::Way;
use stillpoint_tests::results::Named;

/// The value of a row in a figure, or nothing if it was not measured.
type Shown = fn(&Row) -> Option<f64>;

fn with_clock(row: &Row) -> Option<f64> {
    Some(row.overhead(Way::Clock)?.median)
}

fn with_barrier(row: &Row) -> Option<f64> {
    Some(row.overhead(Way::Barrier)?.median)
}

fn natively(row: &Row) -> Option<f64> {
    Some(row.value(Way::Native)?.median)
}

fn clock_itself(row: &Row) -> Option<f64> {
    Some(row.value(Way::Clock)?.median)
}

const OVERHEAD: &str = "overhead, percent of the native time";
const OVERLAP: &str = "overlap, percent of the operation";

/// The file name, group, title, ordinate and value of each figure.
const FIGURES: [(&str, Group, &str, &str, Shown); 5] = [
    (
        "overhead-blocking",
        Group::Blocking,
        "Blocking collective operations with the clock",
        OVERHEAD,
        with_clock,
    ),
    (
        "overhead-blocking-barrier",
        Group::Blocking,
        "Blocking collective operations with two-phase commit",
        OVERHEAD,
        with_barrier,
    ),
    (
        "overhead-nonblocking",
        Group::Nonblocking,
        "Nonblocking collective operations with the clock",
        OVERHEAD,
        with_clock,
    ),
    (
        "overlap-native",
        Group::Overlap,
        "Communication behind computation, natively",
        OVERLAP,
        natively,
    ),
    (
        "overlap-clock",
        Group::Overlap,
        "Communication behind computation, with the clock",
        OVERLAP,
        clock_itself,
    ),
];

/// Draws the figures that have enough results, as name and SVG.
pub fn draw(rows: &[Row], options: &Options) -> Vec<Named> {
    FIGURES
        .iter()
        .filter_map(|(name, group, title, label, shown)| {
            let series = series(rows, *group, *shown);
            let (x, y) = (Axis::logarithmic("bytes"), Axis::linear(*label));
            let chart = Chart::of(*title, x, y, series);
            let name = options.titled(name).replace(' ', "-");
            (!chart.series.is_empty()).then(|| (name, chart.to_svg()))
        })
        .collect()
}

/// Makes a line for every operation of the group, over its sizes.
fn series(rows: &[Row], group: Group, shown: Shown) -> Vec<Series> {
    let mut found: Vec<Series> = vec![];
    for row in rows.iter().filter(|row| row.setting.group == group) {
        let (Some(value), true) = (shown(row), row.setting.size > 0) else {
            continue;
        };
        let name = row.setting.measure.trim_start_matches("overlap-");
        let point = (f64::from(row.setting.size), value);
        match found.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => found.push(Series::of(name, Mark::Line, vec![point])),
        }
    }
    found
}
