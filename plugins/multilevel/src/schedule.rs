//! The one trait of all schedulers.

use crate::plan::Plan;
use crate::problem::{Problem, ScheduleError};

/// A scheduler, which decides the transfers between processes and places.
pub trait Scheduler {
    /// Returns the name for tables.
    fn name(&self) -> &'static str;

    /// Returns a plan that sends every remainder, or the reason why there is none.
    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError>;
}
