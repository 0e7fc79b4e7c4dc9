//! The upper half's threads: their records, their stacks, and the places where they may stop.

pub mod areas;
pub mod at_exit;
pub mod beneath;
pub mod calls;
pub mod deadlines;
pub mod direct_way;
pub mod handler_stack;
pub mod heap;
pub mod interrupted;
pub mod lending;
pub mod lower;
pub mod near;
pub mod own_area;
mod partial_transfers;
pub mod registry;

pub use registry::Thread;

/// Every thread of the upper half that is starting or alive.
pub fn list() -> Vec<Thread> {
    registry::each().collect()
}
