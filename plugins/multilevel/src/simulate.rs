//! Comparison of schedulers, snapshot after snapshot: the paper's section V.
//!
//! Pure except for the clock, which the caller passes: a function that returns the seconds since some moment.

mod drawings;
mod figures;
mod report;

pub use figures::{Case, Figures, Scale, Summary, summarise};

use crate::compare::{Budget, Comparisons, OtherScheduler};
use crate::exact::Exact;
use crate::problem::{Problem, ScheduleError};
use crate::topology::Topology;
use crate::trace::Trace;
use serde::Serialize;

/// The paper's chunk.
pub const CHUNK: u64 = 1_000_000;

/// Names of the simulated schedulers, in the order of all tables.
pub const SCHEDULERS: [&str; 4] = ["baseline", "greedy", "min-time", "exact"];

/// The schedulers that the exact one is compared with, in the same positions.
const OTHERS: [OtherScheduler; 3] = [
    OtherScheduler::Baseline,
    OtherScheduler::Greedy,
    OtherScheduler::MinTime { chunk: CHUNK },
];

/// Positions of some schedulers.
const BASELINE: usize = 0;
const MIN_TIME: usize = 2;
const EXACT: usize = 3;

/// A scheduler's result for a snapshot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// The plan's blocking time, in seconds.
    pub blocking: f64,
    /// The seconds that the scheduler needed.
    pub run_time: f64,
}

/// The results of all schedulers for one snapshot.
#[derive(Clone, PartialEq, Debug)]
pub struct SnapshotOutcome {
    /// The lower bound of the blocking time, in seconds.
    pub optimum: f64,
    /// The decisions; an entry is `None` if the comparison was left out.
    pub decisions: [Option<Decision>; SCHEDULERS.len()],
}

impl SnapshotOutcome {
    /// Returns how much each scheduler's blocking time exceeds the optimum: 1 is twice as long. Returns `None` if
    /// nothing blocks.
    pub fn overhead(&self, scheduler: usize) -> Option<f64> {
        let blocking = self.decisions[scheduler]?.blocking;
        (self.optimum > 0.0).then(|| blocking / self.optimum - 1.0)
    }

    /// Tells whether the slow tier alone would take longer.
    pub fn peers_help(&self) -> bool {
        self.overhead(BASELINE).is_some_and(|over| over > 1e-9)
    }

    /// Returns each scheduler's excess over Algorithm 2, which the paper calls optimal: that algorithm sees nothing smaller than a
    /// chunk.
    pub fn overhead_over_min_time(&self, scheduler: usize) -> Option<f64> {
        let reference = self.decisions[MIN_TIME]?.blocking;
        let blocking = self.decisions[scheduler]?.blocking;
        (reference > 0.0).then(|| blocking / reference - 1.0)
    }
}

/// A trace on a machine. The plans come first; comparisons are made on request.
pub struct Simulation<'a> {
    topology: &'a Topology,
    trace: &'a Trace,
    outcomes: Vec<SnapshotOutcome>,
    now: &'a dyn Fn() -> f64,
}

impl<'a> Simulation<'a> {
    /// Makes the exact plan of every snapshot, and calls `done` after each.
    pub fn new(
        topology: &'a Topology,
        trace: &'a Trace,
        now: &'a dyn Fn() -> f64,
        done: &mut dyn FnMut(),
    ) -> Result<Simulation<'a>, ScheduleError> {
        let mut outcomes = Vec::with_capacity(trace.snapshots().len());
        for sizes in trace.snapshots() {
            let problem = Problem::new(topology, sizes)?;
            let start = now();
            let optimum = Exact::default().solve(&problem)?;
            let run_time = now() - start;
            let blocking = optimum.plan.blocking_time().as_secs_f64();
            let mut decisions = [None; SCHEDULERS.len()];
            decisions[EXACT] = Some(Decision { blocking, run_time });
            outcomes.push(SnapshotOutcome {
                optimum: optimum.time.as_secs_f64(),
                decisions,
            });
            done();
        }
        Ok(Simulation {
            topology,
            trace,
            outcomes,
            now,
        })
    }

    /// Runs another scheduler, by its position in [`SCHEDULERS`], over all snapshots.
    pub fn compare(
        &mut self,
        scheduler: usize,
        budget: &mut Budget,
        done: &mut dyn FnMut(),
    ) -> Result<(), ScheduleError> {
        let Some(other) = OTHERS.get(scheduler) else {
            return Ok(());
        };
        for (sizes, outcome) in self.trace.snapshots().iter().zip(&mut self.outcomes) {
            let problem = Problem::new(self.topology, sizes)?;
            let start = (self.now)();
            let plan = other.schedule(&problem, budget)?;
            let run_time = (self.now)() - start;
            outcome.decisions[scheduler] = plan.map(|plan| Decision {
                blocking: plan.blocking_time().as_secs_f64(),
                run_time,
            });
            done();
        }
        Ok(())
    }

    pub fn outcomes(&self) -> &[SnapshotOutcome] {
        &self.outcomes
    }
}

/// Runs a trace through every scheduler, however long it takes. Calls `done` after every step, four a snapshot.
pub fn run(
    topology: &Topology,
    trace: &Trace,
    now: &dyn Fn() -> f64,
    done: &mut dyn FnMut(),
) -> Result<Vec<SnapshotOutcome>, ScheduleError> {
    let mut simulation = Simulation::new(topology, trace, now, done)?;
    if let Some(mut budget) = Budget::of(Comparisons::All) {
        for scheduler in 0..OTHERS.len() {
            simulation.compare(scheduler, &mut budget, done)?;
        }
    }
    Ok(simulation.outcomes)
}

/// Average, median and extremes of a series.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub median: f64,
    pub percentile_95: f64,
    pub largest: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let Some(&largest) = values.last() else {
            return Spread::default();
        };
        let at = |percent: usize| values[(values.len() * percent / 100).min(values.len() - 1)];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Spread {
            mean,
            median: at(50),
            percentile_95: at(95),
            largest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_scheduler_has_no_overhead_and_algorithm_2_at_most_a_chunk() {
        let topology = Topology::dgx1().with_free(128_000_000);
        let mut trace = Trace::of((0..8).map(|gpu| format!("G{gpu}")).collect());
        for sizes in Trace::synthetic(8, 60, 5).snapshots() {
            // Sizes are whole chunks; otherwise Algorithm 2 also loses by rounding.
            trace
                .record(sizes.iter().map(|size| size / CHUNK * CHUNK).collect())
                .expect("eight sizes");
        }
        let mut heard = 0;
        let outcomes =
            run(&topology, &trace, &|| 0.0, &mut || heard += 1).expect("host memory has room");
        assert_eq!((outcomes.len(), heard), (60, 4 * 60));
        let mut worse = 0;
        for outcome in outcomes.iter().filter(|outcome| outcome.optimum > 0.0) {
            assert!(outcome.overhead(EXACT).expect("blocks") < 1e-6);
            let found = outcome.decisions[MIN_TIME].expect("no limit").blocking;
            assert!(found <= outcome.optimum + CHUNK as f64 / 12e9 + 1e-12);
            worse += usize::from(outcome.overhead(0) > Some(0.5));
        }
        assert!(
            worse > 20,
            "the baseline is far from the optimum in most snapshots: {worse}"
        );
    }

    #[test]
    fn a_comparison_that_was_left_out_says_nothing() {
        let topology = Topology::cluster(64);
        let mut trace = Trace::of((0..64).map(|node| format!("node{node}")).collect());
        for _ in 0..2 {
            let sizes = (0..64).map(|node| 200_000_000 * node).collect();
            trace.record(sizes).expect("sizes");
        }
        let mut simulation =
            Simulation::new(&topology, &trace, &|| 0.0, &mut || {}).expect("plans");
        assert_eq!(simulation.outcomes()[0].overhead(EXACT), Some(0.0));
        let mut budget = Budget::of(Comparisons::Limited).expect("limited");
        for scheduler in 0..SCHEDULERS.len() {
            simulation
                .compare(scheduler, &mut budget, &mut || {})
                .expect("plans");
        }
        let outcomes = simulation.outcomes();
        assert_eq!(outcomes[1].overhead(MIN_TIME), None);
        assert_eq!(outcomes[1].overhead_over_min_time(0), None);
        assert!(
            outcomes[1]
                .overhead(0)
                .is_some_and(|overhead| overhead > 0.0)
        );
        let summaries = summarise(outcomes);
        let left_out = summaries.iter().map(|summary| summary.left_out);
        assert_eq!(left_out.collect::<Vec<_>>(), [0, 0, 2, 0]);
    }

    #[test]
    fn a_spread_of_nothing_is_zero() {
        assert_eq!(Spread::of([]), Spread::default());
        let spread = Spread::of((1..=100).map(f64::from));
        assert_eq!(
            (
                spread.mean,
                spread.median,
                spread.percentile_95,
                spread.largest
            ),
            (50.5, 51.0, 96.0, 100.0)
        );
    }
}
