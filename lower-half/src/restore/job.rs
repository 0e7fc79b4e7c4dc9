//! The interface between a restart and the rank's agent.

use stillpoint_protocol::agent::{KnownAs, Neighbour};
use stillpoint_refusals::Refusal;

/// The job's other ranks, as a restart sees them.
pub trait Job {
    /// Tells the others the id by which the application knows this rank.
    fn is_known_as(&mut self, known: KnownAs) -> Result<(), Refusal>;
    /// Returns what the others have told, after a barrier.
    fn neighbours(&self) -> &[Neighbour];
    /// Returns when every rank of the job has come to this point.
    fn barrier(&mut self, name: &str) -> Result<(), Refusal>;
    /// Starts the agent's thread: the application is about to run.
    fn start(self) -> Result<(), Refusal>;
}
