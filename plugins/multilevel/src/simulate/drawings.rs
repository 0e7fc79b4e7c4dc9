//! The figures as drawings.

use super::figures::{Figures, Summary};
use super::{SCHEDULERS, SnapshotOutcome};
use crate::chart::{Axis, Chart, Mark, Series};
use crate::trace::Trace;
use crate::units::show_bytes;

impl Figures {
    /// Returns the drawings: file name and SVG.
    pub fn to_drawings(&self) -> Vec<(String, String)> {
        let mut drawings = sizes(self.seed);
        for case in &self.cases {
            let number = if case.trace == "RTM" { 6 } else { 7 };
            let free = show_bytes(case.free);
            let chart = Chart::of(
                format!(
                    "{} trace, {free} free: overhead over the optimum",
                    case.trace
                ),
                snapshots(),
                // All panels have the same axis, for comparison.
                Axis::linear("overhead (%)").within(0.0, 1200.0),
                [0, 1, 2].map(|scheduler| overhead_series(&case.outcomes, scheduler)),
            );
            let chart = chart
                .with_level("paper: baseline", 100.0 * case.paper.baseline)
                .with_level("paper: greedy", 100.0 * case.paper.greedy);
            let name = format!("figure-{number}-{}.svg", free.replace(' ', ""));
            drawings.push((name, chart.to_svg()));
        }
        for (number, trace) in [(8, "RTM"), (9, "synthetic")] {
            let series = (0..SCHEDULERS.len()).map(|scheduler| {
                let point = |case: &super::Case| {
                    let summary = Summary::of(&case.outcomes, scheduler);
                    (case.free as f64 / 1e6, summary.run_time.median * 1e6)
                };
                let cases = self.cases.iter().filter(|case| case.trace == trace);
                Series::of(
                    SCHEDULERS[scheduler],
                    Mark::Line,
                    cases.map(point).collect(),
                )
            });
            let chart = Chart::of(
                format!("{trace} trace: time to decide, median"),
                Axis::linear("free space (MB)"),
                Axis::logarithmic("time (us)").within(0.05, 100.0),
                series,
            );
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
        let chart = Chart::of(
            "Sizes of the checkpoints (drawn from the RTM trace's)",
            Axis::linear("percentile"),
            Axis::linear("size (MB)"),
            sizes,
        );
        drawings.push(("figure-10a.svg".to_owned(), chart.to_svg()));
        for (machine, file) in [("pairwise links", "pairwise"), ("switch ports", "ports")] {
            // The axis goes from below one percent, for Algorithm 2, to the hundreds of the baseline.
            let overhead = Axis::logarithmic("overhead (%)");
            let time = Axis::logarithmic("time (us)").within(0.5, 1000.0);
            for (part, name, y) in [
                ('b', "mean overhead over the optimum", overhead),
                ('c', "time to decide, median", time),
            ] {
                let series =
                    (0..SCHEDULERS.len()).filter(|&scheduler| part == 'c' || scheduler < 3);
                let chart = Chart::of(
                    format!("{machine}, 160 MB free: {name}"),
                    Axis::logarithmic("GPUs"),
                    y,
                    series.map(|scheduler| self.scale_series(machine, scheduler, part == 'b')),
                );
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
                let summary = Summary::of(&scale.outcomes, scheduler);
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

fn overhead_series(outcomes: &[SnapshotOutcome], scheduler: usize) -> Series {
    let points = outcomes
        .iter()
        .enumerate()
        .filter_map(|(at, o)| Some((at as f64, 100.0 * o.overhead(scheduler)?)));
    Series::of(SCHEDULERS[scheduler], Mark::Dots, points.collect())
}

/// The snapshots of both traces.
fn snapshots() -> Axis {
    Axis::linear("snapshot").within(0.0, 776.0)
}

/// Snapshots of Figure 4: on the line, before and in the rise, and two after it.
const REPRESENTATIVE: [usize; 5] = [100, 300, 382, 500, 700];

/// Figures 3 to 5: the sizes in the traces.
fn sizes(seed: u64) -> Vec<(String, String)> {
    let rtm = Trace::rtm(seed);
    let synthetic = Trace::synthetic(8, rtm.snapshots().len(), seed);
    let megabytes = || Axis::linear("size (MB)").within(0.0, 240.0);
    let extremes = |title: &str, trace: &Trace| {
        let series = [
            ("largest", most as fn(&[u64]) -> f64),
            ("average", average),
            ("smallest", least),
        ];
        let series = series.map(|(name, of)| {
            let sizes = trace.snapshots().iter().enumerate();
            let points = sizes.map(|(at, sizes)| (at as f64, of(sizes) / 1e6));
            Series::of(name, Mark::Dots, points.collect())
        });
        Chart::of(title, snapshots(), megabytes(), series)
    };
    let of_snapshot = |&at: &usize| {
        let gpus = rtm.snapshots()[at].iter().enumerate();
        let points = gpus.map(|(gpu, &size)| (gpu as f64, size as f64 / 1e6));
        Series::of(format!("snapshot {at}"), Mark::Line, points.collect())
    };
    let gpus = Chart::of(
        "RTM trace (invented): sizes of five snapshots",
        Axis::linear("GPU").within(0.0, 7.0),
        megabytes(),
        REPRESENTATIVE.iter().map(of_snapshot),
    );
    let drawings = [
        (
            "figure-3.svg",
            extremes("RTM trace (invented): sizes of 8 GPUs", &rtm),
        ),
        ("figure-4.svg", gpus),
        (
            "figure-5.svg",
            extremes("Synthetic trace: sizes of 8 GPUs", &synthetic),
        ),
    ];
    drawings
        .map(|(name, chart)| (name.to_owned(), chart.to_svg()))
        .into()
}

fn most(sizes: &[u64]) -> f64 {
    sizes.iter().max().map_or(0.0, |&size| size as f64)
}

fn least(sizes: &[u64]) -> f64 {
    sizes.iter().min().map_or(0.0, |&size| size as f64)
}

fn average(sizes: &[u64]) -> f64 {
    sizes.iter().sum::<u64>() as f64 / sizes.len().max(1) as f64
}
