//! Keeps a way at a rate, so that staging leaves room for others, and so that tests and benchmarks know what to expect.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_protocol::Span;

/// The most time by which a wait that was too long is made up for.
const CREDIT: Duration = Duration::from_millis(5);

/// A way with a limit, shared by all threads that use it.
#[derive(Debug)]
pub struct Throttle {
    /// Bytes per second, or `None` without a limit.
    limit: Option<u64>,
    /// The time at which everything let through so far will have passed at this rate.
    passed: Mutex<Instant>,
}

impl Throttle {
    pub fn new(limit: Option<u64>) -> Throttle {
        Throttle {
            limit,
            passed: Mutex::new(Instant::now()),
        }
    }

    /// Returns when so many bytes would have passed at the limit.
    pub fn wait(&self, bytes: usize) {
        let Some(limit) = self.limit else {
            return;
        };
        let time = Duration::try_from_secs_f64(bytes as f64 / limit as f64);
        let time = Span::from(time.unwrap_or(Span::LONGEST)).time();
        let now = Instant::now();
        let until = {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            let from = (*passed).max(now.checked_sub(CREDIT).unwrap_or(now));
            *passed = from + time;
            *passed
        };
        thread::sleep(until.saturating_duration_since(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_keeps_the_rate() {
        let throttle = Throttle::new(Some(10_000_000));
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..10).for_each(|_| throttle.wait(100_000)));
            }
        });
        // 2 MB at 10 MB/s; a busy machine may add to it.
        let took = began.elapsed().as_secs_f64();
        assert!((0.19..0.5).contains(&took), "{took}");
        Throttle::new(None).wait(usize::MAX);
    }
}
