//! Progress messages: one line that changes on a terminal, or a line now and then elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The time between two lines without a terminal.
const SELDOM: Duration = Duration::from_secs(30);

pub struct Progress {
    what: String,
    terminal: bool,
    last: Instant,
}

impl Progress {
    pub fn new(what: String) -> Progress {
        Progress {
            what,
            terminal: stderr().is_terminal(),
            last: Instant::now(),
        }
    }

    /// Reports the progress. Failed writes do not matter.
    pub fn say(&mut self, how_far: &str) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K{}: {how_far}", self.what);
        } else if self.last.elapsed() >= SELDOM {
            self.last = Instant::now();
            let _ = writeln!(stderr(), "{}: {how_far}", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
