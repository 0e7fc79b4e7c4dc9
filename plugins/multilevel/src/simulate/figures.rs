//! The experiments behind the paper's Figures 6 to 10.

use super::{SCHEDULERS, SnapshotOutcome, Spread, run};
use crate::problem::ScheduleError;
use crate::topology::Topology;
use crate::trace::{Statistics, Trace};
use serde::Serialize;

/// Free fast-tier space of each GPU in Figures 6 to 9.
pub const FREE: [u64; 3] = [80_000_000, 128_000_000, 160_000_000];
/// Numbers of GPUs in Figure 10.
pub const GPUS: [usize; 4] = [16, 32, 64, 128];
/// Snapshots of each number of GPUs. The paper has one, which says little about a random draw.
const SCALE_SNAPSHOTS: usize = 24;
const SCALE_FREE: u64 = 160_000_000;

/// The paper's upper bounds for how much slower than Algorithm 2 greedy and baseline are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    pub greedy: f64,
    pub baseline: f64,
}

/// Returns the bounds of section V.D: RTM with 80 MB free, RTM with more, synthetic.
fn bounds(trace: &str, free: u64) -> Bounds {
    let (greedy, baseline) = match (trace, free) {
        ("RTM", 80_000_000) => (0.5, 2.0),
        ("RTM", _) => (1.0, 4.0),
        _ => (2.0, 8.0),
    };
    Bounds { greedy, baseline }
}

/// A trace on a machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    pub trace: &'static str,
    pub free: u64,
    pub paper: Bounds,
    pub outcomes: Vec<SnapshotOutcome>,
}

/// One number of GPUs on one kind of machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Scale {
    pub machine: &'static str,
    pub gpus: usize,
    /// Percentiles of the sizes in bytes, every fifth (Figure 10a).
    pub sizes: Vec<u64>,
    pub outcomes: Vec<SnapshotOutcome>,
}

/// All data behind the figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    pub seed: u64,
    pub rtm: Statistics,
    pub synthetic: Statistics,
    /// Figures 6 to 9.
    pub cases: Vec<Case>,
    /// Figure 10.
    pub scales: Vec<Scale>,
}

impl Figures {
    /// Returns the number of calls to `done`.
    pub fn steps() -> usize {
        SCHEDULERS.len() * (2 * FREE.len() * 776 + 2 * GPUS.len() * SCALE_SNAPSHOTS)
    }

    /// Runs everything.
    pub fn run(
        seed: u64,
        now: &dyn Fn() -> f64,
        done: &mut dyn FnMut(),
    ) -> Result<Figures, ScheduleError> {
        let rtm = Trace::rtm(seed);
        let synthetic = Trace::synthetic(8, rtm.snapshots().len(), seed);
        let mut cases = Vec::new();
        for (name, trace) in [("RTM", &rtm), ("synthetic", &synthetic)] {
            for free in FREE {
                let outcomes = run(&Topology::dgx1().with_free(free), trace, now, done)?;
                cases.push(Case {
                    trace: name,
                    free,
                    paper: bounds(name, free),
                    outcomes,
                });
            }
        }
        let mut scales = Vec::new();
        for (machine, build) in [
            (
                "pairwise links",
                Topology::all_to_all as fn(usize) -> Topology,
            ),
            ("switch ports", Topology::nvswitch),
        ] {
            for gpus in GPUS {
                let trace = Trace::synthetic(gpus, SCALE_SNAPSHOTS, seed);
                let sizes = percentiles(&trace);
                let outcomes = run(&build(gpus).with_free(SCALE_FREE), &trace, now, done)?;
                scales.push(Scale {
                    machine,
                    gpus,
                    sizes,
                    outcomes,
                });
            }
        }
        Ok(Figures {
            seed,
            rtm: rtm.statistics(),
            synthetic: synthetic.statistics(),
            cases,
            scales,
        })
    }
}

fn percentiles(trace: &Trace) -> Vec<u64> {
    let mut sizes = trace.snapshots().concat();
    sizes.sort_unstable();
    (0..=20)
        .map(|twentieth| sizes[(sizes.len() - 1) * twentieth / 20])
        .collect()
}

/// One scheduler's results in a series of experiments.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    pub scheduler: &'static str,
    /// Snapshots in which any transfer blocks.
    pub blocking_snapshots: usize,
    /// Snapshots for which this scheduler had no time; the numbers below leave them out.
    pub left_out: usize,
    /// Blocking time in seconds, of the blocking snapshots.
    pub blocking: Spread,
    /// Excess over the optimum; 1 is twice as long.
    pub overhead: Spread,
    /// Excess over Algorithm 2 with chunks of 1 MB, the paper's reference.
    pub overhead_over_min_time: Spread,
    /// Seconds to decide, of all snapshots.
    pub run_time: Spread,
}

/// Makes one summary for each scheduler.
pub fn summarise(outcomes: &[SnapshotOutcome]) -> Vec<Summary> {
    (0..SCHEDULERS.len())
        .map(|scheduler| Summary::of(outcomes, scheduler))
        .collect()
}

impl Summary {
    /// Summarises the scheduler at that position in [`SCHEDULERS`].
    pub fn of(outcomes: &[SnapshotOutcome], scheduler: usize) -> Summary {
        let decided = || {
            let decision =
                |outcome: &SnapshotOutcome| Some((outcome.optimum, outcome.decisions[scheduler]?));
            outcomes.iter().filter_map(decision)
        };
        let blocking = decided().filter(|(optimum, _)| *optimum > 0.0);
        let over_min_time = |outcome: &SnapshotOutcome| outcome.overhead_over_min_time(scheduler);
        Summary {
            scheduler: SCHEDULERS[scheduler],
            blocking_snapshots: outcomes.iter().filter(|o| o.optimum > 0.0).count(),
            left_out: outcomes.len() - decided().count(),
            blocking: Spread::of(blocking.map(|(_, decision)| decision.blocking)),
            overhead: Spread::of(outcomes.iter().filter_map(|o| o.overhead(scheduler))),
            overhead_over_min_time: Spread::of(outcomes.iter().filter_map(over_min_time)),
            run_time: Spread::of(decided().map(|(_, decision)| decision.run_time)),
        }
    }
}
