//! Times that come from outside: an option, a request, a file.
//!
//! Only this type reads such a time, and it returns a bounded one. So the sum of a moment and such a time cannot overflow, which would end the process.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::codec::{Decode, Encode};

/// A time from outside. A longer one counts as ten years.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(Duration);

impl Span {
    /// The longest time; no job and no command lives as long.
    pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

    /// The time, bounded.
    pub fn time(self) -> Duration {
        self.0.min(Span::LONGEST)
    }
}

impl From<Duration> for Span {
    fn from(time: Duration) -> Span {
        Span(time)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::codec::{Frames, encode};

    #[test]
    fn no_time_is_too_long_for_a_sum() {
        let longest = Span::from(Duration::MAX);
        let sum = Instant::now() + longest.time() + longest.time();
        assert!(sum > Instant::now());
        let mut frames = Frames::default();
        frames.push(&encode(&longest).unwrap());
        let heard: Span = frames.next_message().unwrap().unwrap();
        assert_eq!(heard.time(), Span::LONGEST);
        let text = serde_json::to_string(&longest).unwrap();
        let read: Span = serde_json::from_str(&text).unwrap();
        assert_eq!(read.time(), Span::LONGEST);
    }
}
