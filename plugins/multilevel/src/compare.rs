//! The other schedulers, for comparison, and a limit on the time that they take.
//!
//! Baseline and greedy are at most as slow as the exact scheduler. Algorithm 2 takes one search for each chunk, which is minutes
//! on a machine of a thousand nodes. So it gets a number of steps. They are counted, not timed, so that the same comparisons are
//! left out every time.

use crate::greedy::Greedy;
use crate::local_only::LocalOnly;
use crate::min_time::MinTime;
use crate::plan::Plan;
use crate::problem::{Problem, ScheduleError};
use crate::schedule::Scheduler;

/// The schedulers to compare with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Comparisons {
    /// Nothing.
    None,
    /// Every scheduler, if it takes a fraction of a second.
    #[default]
    Limited,
    /// Every scheduler, however long it takes.
    All,
}

/// Steps of Algorithm 2 for one checkpoint: about a tenth of a second.
pub const STEPS: u64 = 10_000_000;
/// Steps for all checkpoints of a trace together: one or two seconds.
pub const STEPS_OF_A_TRACE: u64 = 20 * STEPS;

/// The steps that are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    each: u64,
    together: u64,
}

impl Budget {
    /// Returns the budget for any number of checkpoints, or `None` if there are no comparisons.
    pub fn of(comparisons: Comparisons) -> Option<Budget> {
        let budget = |each, together| Some(Budget { each, together });
        match comparisons {
            Comparisons::None => None,
            Comparisons::Limited => budget(STEPS, STEPS_OF_A_TRACE),
            Comparisons::All => budget(u64::MAX, u64::MAX),
        }
    }
}

/// A scheduler to compare with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherScheduler {
    Baseline,
    Greedy,
    MinTime { chunk: u64 },
}

impl OtherScheduler {
    pub fn name(self) -> &'static str {
        match self {
            OtherScheduler::Baseline => LocalOnly.name(),
            OtherScheduler::Greedy => Greedy.name(),
            OtherScheduler::MinTime { chunk } => MinTime { chunk }.name(),
        }
    }

    /// Makes its plan, or returns `None` if it takes more steps than are left.
    pub fn schedule(
        self,
        problem: &Problem<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Plan>, ScheduleError> {
        match self {
            OtherScheduler::Baseline => LocalOnly.schedule(problem).map(Some),
            OtherScheduler::Greedy => Greedy.schedule(problem).map(Some),
            OtherScheduler::MinTime { chunk } => {
                let before = budget.each.min(budget.together);
                let mut left = before;
                let plan = MinTime { chunk }.schedule_within(problem, &mut left);
                if budget.together < u64::MAX {
                    budget.together -= before - left;
                }
                plan
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn algorithm_2_is_left_out_where_it_takes_too_many_steps_and_the_others_never() {
        let cluster = Topology::cluster(64);
        let sizes: Vec<u64> = (0..64).map(|node| 200_000_000 * node).collect();
        let problem = Problem::new(&cluster, &sizes).expect("sizes");
        let min_time = OtherScheduler::MinTime { chunk: 1_000_000 };
        let mut budget = Budget::of(Comparisons::Limited).expect("limited");
        assert_eq!(min_time.schedule(&problem, &mut budget), Ok(None));
        assert_eq!(budget.together, STEPS_OF_A_TRACE - STEPS);
        for other in [OtherScheduler::Baseline, OtherScheduler::Greedy] {
            let plan = other.schedule(&problem, &mut budget).expect("a plan");
            assert!(plan.is_some(), "{}", other.name());
        }
        // Each checkpoint of a trace reduces the common budget.
        for _ in 0..19 {
            assert_eq!(min_time.schedule(&problem, &mut budget), Ok(None));
        }
        assert_eq!(budget.together, 0);
        let small = Problem::new(&cluster, &[9_000_000_000; 64]).expect("sizes");
        let coarse = OtherScheduler::MinTime {
            chunk: 1_000_000_000,
        };
        assert_eq!(coarse.schedule(&small, &mut budget), Ok(None));
        let mut all = Budget::of(Comparisons::All).expect("all");
        assert!(matches!(coarse.schedule(&small, &mut all), Ok(Some(_))));
        assert_eq!(Budget::of(Comparisons::None), None);
    }
}
