//! What a restart needs of whoever speaks for the rank.

/// Where the job's ranks wait for one another.
pub trait Job {
    /// Returns when every rank of the job has come to this point.
    fn barrier(&mut self, name: &str) -> Result<(), String>;
    /// Starts the agent's thread: the application is about to run.
    fn start(self) -> Result<(), String>;
}
