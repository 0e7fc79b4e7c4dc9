//! A bar on stderr for work that takes long: one line that changes on a terminal, nothing elsewhere.

use std::io::{IsTerminal, Write};

const WIDTH: usize = 40;

/// Counts steps, and shows whole percents.
pub struct Bar {
    steps: usize,
    done: usize,
    shown: usize,
    terminal: bool,
}

impl Bar {
    pub fn new(steps: usize) -> Bar {
        Bar {
            steps: steps.max(1),
            done: 0,
            shown: 0,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    pub fn step(&mut self) {
        self.done += 1;
        let percent = (100 * self.done / self.steps).min(100);
        if self.terminal && percent > self.shown {
            self.shown = percent;
            let full = "#".repeat(WIDTH * percent / 100);
            // Progress that cannot be shown is no reason to stop.
            let _ = write!(std::io::stderr(), "\r[{full:<WIDTH$}] {percent:3} %");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.terminal && self.shown > 0 {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
