//! The one trait of all schedulers.

use crate::plan::Plan;
use crate::problem::{Problem, ScheduleError};

/// Decides who sends what to whom.
pub trait Scheduler {
    /// A word for tables.
    fn name(&self) -> &'static str;

    /// A plan that sends every remainder, or the reason why there is none.
    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError>;
}
