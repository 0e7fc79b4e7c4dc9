//! Schedulers against each other, snapshot after snapshot: the paper's section V.
//!
//! Pure but for the clock, which the caller brings: a function that tells seconds since some moment.

mod drawings;
mod figures;
mod report;

pub use figures::{Case, Figures, Scale, Summary, summarise};

use crate::exact::Exact;
use crate::greedy::Greedy;
use crate::local_only::LocalOnly;
use crate::min_time::MinTime;
use crate::problem::{Problem, ScheduleError};
use crate::schedule::Scheduler;
use crate::topology::Topology;
use crate::trace::Trace;
use serde::Serialize;

/// The paper's chunk.
pub const CHUNK: u64 = 1_000_000;

/// Names of the simulated schedulers, in the order of all tables.
pub const SCHEDULERS: [&str; 4] = ["baseline", "greedy", "min-time", "exact"];

/// Algorithm 2's place among them.
const MIN_TIME: usize = 2;

/// One snapshot through all schedulers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The blocking time that nothing undercuts, in seconds.
    pub optimum: f64,
    /// Blocking time of each scheduler, in seconds.
    pub blocking: [f64; SCHEDULERS.len()],
    /// What each took to decide, in seconds.
    pub run_time: [f64; SCHEDULERS.len()],
}

impl Outcome {
    /// By how much each scheduler's blocking time exceeds the optimum: 1 is twice as long. `None` where nothing blocks.
    pub fn overhead(&self, scheduler: usize) -> Option<f64> {
        (self.optimum > 0.0).then(|| self.blocking[scheduler] / self.optimum - 1.0)
    }

    /// The same over Algorithm 2, which is what the paper calls optimal: it sees nothing smaller than a chunk.
    pub fn overhead_over_min_time(&self, scheduler: usize) -> Option<f64> {
        let reference = self.blocking[MIN_TIME];
        (reference > 0.0).then(|| self.blocking[scheduler] / reference - 1.0)
    }
}

/// Runs a trace; `done` hears of every snapshot.
pub fn run(
    topology: &Topology,
    trace: &Trace,
    now: &dyn Fn() -> f64,
    done: &mut dyn FnMut(),
) -> Result<Vec<Outcome>, ScheduleError> {
    let exact = Exact::default();
    let schedulers: [&dyn Scheduler; SCHEDULERS.len()] =
        [&LocalOnly, &Greedy, &MinTime { chunk: CHUNK }, &exact];
    let mut outcomes = Vec::with_capacity(trace.snapshots().len());
    for sizes in trace.snapshots() {
        let problem = Problem::new(topology, sizes)?;
        let optimum = exact.solve(&problem)?.time.as_secs_f64();
        let mut outcome = Outcome {
            optimum,
            blocking: [0.0; 4],
            run_time: [0.0; 4],
        };
        for (at, scheduler) in schedulers.iter().enumerate() {
            let start = now();
            let plan = scheduler.schedule(&problem)?;
            outcome.run_time[at] = now() - start;
            outcome.blocking[at] = plan.blocking_time().as_secs_f64();
        }
        outcomes.push(outcome);
        done();
    }
    Ok(outcomes)
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
            // Whole chunks: else Algorithm 2 also loses what it rounds.
            trace
                .record(sizes.iter().map(|size| size / CHUNK * CHUNK).collect())
                .expect("eight sizes");
        }
        let mut heard = 0;
        let outcomes =
            run(&topology, &trace, &|| 0.0, &mut || heard += 1).expect("host memory has room");
        assert_eq!((outcomes.len(), heard), (60, 60));
        let mut worse = 0;
        for outcome in outcomes.iter().filter(|outcome| outcome.optimum > 0.0) {
            assert!(outcome.overhead(3).expect("blocks") < 1e-6);
            assert!(outcome.blocking[MIN_TIME] <= outcome.optimum + CHUNK as f64 / 12e9 + 1e-12);
            worse += usize::from(outcome.overhead(0) > Some(0.5));
        }
        assert!(
            worse > 20,
            "the baseline is far from the optimum in most snapshots: {worse}"
        );
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
