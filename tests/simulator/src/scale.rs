//! One checkpoint of a job of very many ranks, with time: how many orders, messages and bytes the way to the still
//! point takes. The clock's decisions and the coordinator's machine are the real ones; messages have the bytes of the
//! real protocol.
//!
//! Ranks compute, meet in blocking collective operations and exchange messages with neighbours; a message between an
//! agent and the coordinator takes [`Times::latency`], and the coordinator, one thread, [`Times::handling`] for each that
//! it gets or sends.

mod agent;
mod coordinator;
mod engine;
mod layout;
mod program;
mod rank;
mod wire;

pub use engine::{StillPointCost, checkpoint};
pub use layout::{Kind, Layout};

/// Durations in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Longest computation between two operations; the shortest is a tenth of it.
    pub compute: u64,
    /// A collective operation, once all have come.
    pub collective: u64,
    pub latency: u64,
    pub handling: u64,
    /// How long an agent watches before it says that its rank waits.
    pub tick: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            compute: 10_000_000,
            collective: 50_000,
            latency: 20_000,
            handling: 11_000,
            tick: 2_000_000,
        }
    }
}
