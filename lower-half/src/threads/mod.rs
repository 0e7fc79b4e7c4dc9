//! The upper half's threads: their records, how they come and go, how they stop and are made again.

pub mod areas;
pub mod beneath;
pub mod calls;
pub mod clone;
pub mod errand;
pub mod exit;
pub mod handler_stack;
pub mod interrupted;
pub mod lending;
pub mod lower;
pub mod near;
pub mod own_area;
pub mod recreate;
pub mod registry;
pub mod rehearse;
pub mod stop;

pub use recreate::{SavedThread, recreate, resume_main};
pub use registry::Thread;
pub use stop::{release_all, stop};

/// Every thread of the upper half that is starting or alive.
pub fn list() -> Vec<Thread> {
    registry::each().collect()
}
