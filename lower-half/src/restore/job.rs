//! The interface between a restart and the rank's agent.

/// The job's other ranks, as a restart sees them.
pub trait Job {
    /// Returns when every rank of the job has come to this point.
    fn barrier(&mut self, name: &str) -> Result<(), String>;
    /// Starts the agent's thread: the application is about to run.
    fn start(self) -> Result<(), String>;
}
