//! A long application that fails now and then: section V of the two-level model.

use super::Costs;
use crate::random::Dice;
use serde::Serialize;

/// Seconds by use, on average over all runs.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Totals {
    /// From start to end.
    pub completion: f64,
    pub checkpoint: f64,
    pub restart: f64,
    /// Time to repeat lost computation.
    pub recomputing: f64,
    pub failures: f64,
}

impl Totals {
    /// Returns the time without progress.
    pub fn wasted(&self) -> f64 {
        self.checkpoint + self.restart + self.recomputing
    }

    /// Returns the paper's three percentages: checkpoints of the wasted time, restarts of it, wasted time of the whole.
    pub fn percentages(&self) -> [f64; 3] {
        let wasted = self.wasted();
        let part = |of: f64| {
            if wasted > 0.0 {
                100.0 * of / wasted
            } else {
                0.0
            }
        };
        [
            part(self.checkpoint),
            part(self.restart),
            100.0 * wasted / self.completion,
        ]
    }
}

/// Runs an application of `work` seconds with a checkpoint after every `interval` seconds of computing, `runs` times.
///
/// Failures strike at any time, in checkpoints and restarts too. The last stretch ends without a checkpoint.
pub fn simulate(costs: &Costs, work: f64, interval: f64, runs: u32, seed: u64) -> Totals {
    let mut totals = Totals::default();
    let mut dice = Dice::new(seed);
    for _ in 0..runs {
        run(costs, work, interval, &mut dice, &mut totals);
    }
    let runs = f64::from(runs.max(1));
    for total in [
        &mut totals.completion,
        &mut totals.checkpoint,
        &mut totals.restart,
        &mut totals.recomputing,
    ] {
        *total /= runs;
    }
    totals.failures /= runs;
    totals
}

fn run(costs: &Costs, work: f64, interval: f64, dice: &mut Dice, totals: &mut Totals) {
    let period = interval + costs.checkpoint;
    let mut left = work;
    loop {
        let stretches = (left / interval).ceil().max(1.0) - 1.0;
        let until_done = left + stretches * costs.checkpoint;
        let until_failure = dice.exponential(costs.mttf);
        if until_failure >= until_done {
            totals.checkpoint += stretches * costs.checkpoint;
            totals.completion += until_done;
            return;
        }
        let kept = (until_failure / period).floor().min(stretches);
        left -= kept * interval;
        totals.checkpoint += kept * costs.checkpoint;
        totals.recomputing += until_failure - kept * period;
        totals.completion += until_failure;
        totals.failures += 1.0;
        // A restart that fails starts again.
        loop {
            let until_failure = dice.exponential(costs.mttf);
            let spent = until_failure.min(costs.restart);
            totals.restart += spent;
            totals.completion += spent;
            if until_failure >= costs.restart {
                break;
            }
            totals.failures += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_many_runs_is_dalys_expected_time() {
        for (mttf, checkpoint, restart, interval) in [
            (3600.0, 60.0, 120.0, 600.0),
            (3600.0, 600.0, 900.0, 1800.0),
            (86_400.0, 40.0, 60.0, 2600.0),
        ] {
            let costs = Costs::checked(mttf, checkpoint, restart).expect("costs");
            let work = 200.0 * interval;
            let totals = simulate(&costs, work, interval, 3000, 1);
            // The last stretch has no checkpoint, but the formula counts one.
            let expected = costs.expected_time(work, interval) - checkpoint;
            assert!(
                (totals.completion / expected - 1.0).abs() < 0.01,
                "{totals:?} {expected}"
            );
            assert!((totals.completion - work - totals.wasted()).abs() < 1e-6 * work);
        }
    }

    #[test]
    fn without_failures_only_checkpoints_cost() {
        let costs = Costs::checked(1e15, 10.0, 10.0).expect("costs");
        let totals = simulate(&costs, 1000.0, 100.0, 3, 1);
        assert_eq!(
            (totals.completion, totals.checkpoint, totals.failures),
            (1090.0, 90.0, 0.0)
        );
    }
}
