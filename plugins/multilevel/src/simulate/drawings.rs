//! The figures as drawings.

use super::figures::{Figures, summarise};
use super::{Outcome, SCHEDULERS};
use crate::chart::{Axis, Chart, Mark, Series};
use crate::units::show_bytes;

impl Figures {
    /// Drawings: file name and SVG.
    pub fn to_drawings(&self) -> Vec<(String, String)> {
        let mut drawings = Vec::new();
        for case in &self.cases {
            let number = if case.trace == "RTM" { 6 } else { 7 };
            let free = show_bytes(case.free);
            let chart = Chart {
                title: format!(
                    "{} trace, {free} free: overhead over the optimum",
                    case.trace
                ),
                x: Axis::linear("snapshot"),
                y: Axis::linear("overhead (%)"),
                series: [0, 1, 2]
                    .map(|scheduler| overhead_series(&case.outcomes, scheduler))
                    .to_vec(),
            };
            drawings.push((
                format!("figure-{number}-{}.svg", free.replace(' ', "")),
                chart.to_svg(),
            ));
        }
        for (number, trace) in [(8, "RTM"), (9, "synthetic")] {
            let series = (0..SCHEDULERS.len()).map(|scheduler| {
                let point = |case: &super::Case| {
                    let summary = &summarise(&case.outcomes)[scheduler];
                    (case.free as f64 / 1e6, summary.run_time.median * 1e6)
                };
                let cases = self.cases.iter().filter(|case| case.trace == trace);
                Series::of(
                    SCHEDULERS[scheduler],
                    Mark::Line,
                    cases.map(point).collect(),
                )
            });
            let chart = Chart {
                title: format!("{trace} trace: time to decide, median"),
                x: Axis::linear("free space (MB)"),
                y: Axis::logarithmic("time (us)"),
                series: series.collect(),
            };
            drawings.push((format!("figure-{number}.svg"), chart.to_svg()));
        }
        let sizes = self
            .scales
            .iter()
            .filter(|scale| scale.machine == "pairwise links")
            .map(|scale| {
                let points = scale
                    .sizes
                    .iter()
                    .enumerate()
                    .map(|(at, &size)| (5.0 * at as f64, size as f64 / 1e6));
                Series::of(format!("{} GPUs", scale.gpus), Mark::Line, points.collect())
            });
        let chart = Chart {
            title: "Sizes of the checkpoints".to_owned(),
            x: Axis::linear("percentile"),
            y: Axis::linear("size (MB)"),
            series: sizes.collect(),
        };
        drawings.push(("figure-10a.svg".to_owned(), chart.to_svg()));
        for (machine, file) in [("pairwise links", "pairwise"), ("switch ports", "ports")] {
            for (part, name, y) in [
                (
                    'b',
                    "mean overhead over the optimum",
                    Axis::linear("overhead (%)"),
                ),
                (
                    'c',
                    "time to decide, median",
                    Axis::logarithmic("time (us)"),
                ),
            ] {
                let series =
                    (0..SCHEDULERS.len()).filter(|&scheduler| part == 'c' || scheduler < 3);
                let series =
                    series.map(|scheduler| self.scale_series(machine, scheduler, part == 'b'));
                let chart = Chart {
                    title: format!("{machine}, 160 MB free: {name}"),
                    x: Axis::logarithmic("GPUs"),
                    y,
                    series: series.collect(),
                };
                drawings.push((format!("figure-10{part}-{file}.svg"), chart.to_svg()));
            }
        }
        drawings
    }

    pub(super) fn scale_series(&self, machine: &str, scheduler: usize, overhead: bool) -> Series {
        let points = self
            .scales
            .iter()
            .filter(|scale| scale.machine == machine)
            .map(|scale| {
                let summary = &summarise(&scale.outcomes)[scheduler];
                let value = if overhead {
                    summary.overhead.mean * 100.0
                } else {
                    summary.run_time.median * 1e6
                };
                (scale.gpus as f64, value)
            });
        Series::of(SCHEDULERS[scheduler], Mark::Line, points.collect())
    }
}

fn overhead_series(outcomes: &[Outcome], scheduler: usize) -> Series {
    let points = outcomes
        .iter()
        .enumerate()
        .filter_map(|(at, o)| Some((at as f64, 100.0 * o.overhead(scheduler)?)));
    Series::of(SCHEDULERS[scheduler], Mark::Dots, points.collect())
}
