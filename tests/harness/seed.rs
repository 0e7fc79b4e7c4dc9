//! Random moments that can be repeated.

use std::env;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A stream of numbers that follows from its seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Seed {
    /// The value of `STILLPOINT_TEST_SEED` that gives the same stream.
    pub start: u64,
    state: u64,
}

impl Seed {
    /// Makes a stream from `STILLPOINT_TEST_SEED`, else from the clock.
    pub fn new() -> Seed {
        let given = env::var("STILLPOINT_TEST_SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |since| since.as_nanos() as u64);
        Seed::from(given.unwrap_or(now % 1_000_000_007))
    }

    /// Parses the seeds in a variable: `first..end` or one number.
    pub fn range(text: &str) -> Option<Range<u64>> {
        match text.split_once("..") {
            Some((first, end)) => Some(first.parse().ok()?..end.parse().ok()?),
            None => text.parse().ok().map(|one| one..one + 1),
        }
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    /// Returns a time below `longest`.
    pub fn moment(&mut self, longest: Duration) -> Duration {
        Duration::from_micros(self.below(longest.as_micros() as u64))
    }
}

impl From<u64> for Seed {
    fn from(start: u64) -> Seed {
        Seed {
            start,
            state: start,
        }
    }
}

impl Default for Seed {
    fn default() -> Self {
        Seed::new()
    }
}
