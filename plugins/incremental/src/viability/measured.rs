//! A rate, measured while the application runs.

/// Bytes a second. Bytes and seconds are averages, in which the newest measurement weighs as much as all earlier ones; the rate is
/// computed from the averages. So a measurement with few bytes and much overhead has little influence.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Measured {
    bytes: f64,
    seconds: f64,
    /// Whether there has been a measurement.
    begun: bool,
}

impl Measured {
    /// Records that so many bytes have taken so many seconds.
    pub fn record(&mut self, bytes: u64, seconds: f64) {
        if bytes == 0 || !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let weight = if self.begun { 0.5 } else { 1.0 };
        self.bytes += weight * (bytes as f64 - self.bytes);
        self.seconds += weight * (seconds - self.seconds);
        self.begun = true;
    }

    /// Returns bytes a second, if anything has been measured.
    pub fn rate(&self) -> Option<f64> {
        self.begun.then(|| self.bytes / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_follows_the_last_times_by_their_sizes() {
        let mut rate = Measured::default();
        assert_eq!(rate.rate(), None);
        rate.record(1000, 1.0);
        assert_eq!(rate.rate(), Some(1000.0));
        rate.record(3000, 1.0);
        assert_eq!(rate.rate(), Some(2000.0));
        // A tiny write has little influence on the rate, whether it is fast or not.
        rate.record(1, 0.001);
        let now = rate.rate().expect("measured");
        assert!((1990.0..2010.0).contains(&now), "{now}");
        for (bytes, seconds) in [(0, 1.0), (5, 0.0), (5, -1.0), (5, f64::NAN)] {
            rate.record(bytes, seconds);
            assert_eq!(rate.rate(), Some(now));
        }
    }
}
