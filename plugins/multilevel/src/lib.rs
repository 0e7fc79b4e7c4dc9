//! Storage tiers: the placement of a checkpoint that does not fit on the fast tier, and the costs of checkpoints.
//!
//! Fast tiers are small. If checkpoint sizes differ, some processes do not fit on theirs (*senders*, with a *remainder*)
//! while others have room left (*receivers*, with *spare capacity*). Sending a part to peers over fast links and a part to
//! the slow tier at the same time shortens the *blocking time*. The terms are those of Maurya et al., "Towards Efficient I/O
//! Scheduling for Collaborative Multi-Level Checkpointing" (MASCOTS 2021).
//!
//! Schedulers, models and simulations are pure: no files, no clocks, and only seeded randomness.

pub mod chart;
pub mod compare;
pub mod exact;
pub mod flow;
mod graph;
pub mod greedy;
pub mod interval;
pub mod local_only;
pub mod min_time;
pub mod placement;
pub mod plan;
pub mod problem;
mod random;
pub mod ratio;
pub mod report;
mod routes;
pub mod schedule;
pub mod simulate;
pub mod topology;
pub mod trace;
pub mod units;

pub use exact::{Exact, Optimum};
pub use greedy::Greedy;
pub use local_only::LocalOnly;
pub use min_time::MinTime;
pub use plan::{Plan, PlanError, Transfer};
pub use problem::{Problem, ScheduleError};
pub use ratio::Seconds;
pub use schedule::Scheduler;
pub use topology::{End, Topology};
