//! The baseline: bytes that do not fit on a process's own fast tier go to the slow tier, and peers take nothing.

use crate::plan::{Plan, PlanBuilder};
use crate::problem::{Problem, ScheduleError};
use crate::routes::{Routes, SlowTiers};
use crate::schedule::Scheduler;

/// Section V.A of the paper: every process works by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalOnly;

impl Scheduler for LocalOnly {
    fn name(&self) -> &'static str {
        "baseline"
    }

    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError> {
        let mut tiers = SlowTiers::new(problem.topology());
        let mut plan = PlanBuilder::new();
        for sender in problem.senders() {
            let routes = Routes::from(problem.topology(), sender);
            tiers.send(
                problem,
                &routes,
                sender,
                problem.remainder()[sender],
                &mut plan,
            )?;
        }
        Ok(plan.finish(problem))
    }
}
