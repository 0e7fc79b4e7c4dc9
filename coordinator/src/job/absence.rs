//! The times at which ranks and hosts went, while the job may still wait for them.

use std::time::Duration;

/// Whether the coordinator's host is cut off from all others of the job.
#[derive(Debug, Default)]
pub enum Isolation {
    #[default]
    None,
    /// The time at which the directory is released.
    Until(Duration),
    LetGo,
}

impl Isolation {
    pub fn due(&self) -> Option<Duration> {
        match self {
            Isolation::Until(due) => Some(*due),
            Isolation::None | Isolation::LetGo => None,
        }
    }
}

/// The missing parts of the job.
#[derive(Debug)]
pub struct Absence {
    /// The time at which the coordinator began to wait for ranks.
    pub began: Duration,
    /// The time at which the last connected rank went, if others have not come yet.
    pub deserted: Option<Duration>,
    /// Whether the process that started the job as rank 0 has ended.
    pub starter_gone: bool,
    pub isolation: Isolation,
}

impl Absence {
    pub fn new(now: Duration) -> Absence {
        Absence {
            began: now,
            deserted: None,
            starter_gone: false,
            isolation: Isolation::default(),
        }
    }
}
