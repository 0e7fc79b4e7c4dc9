//! A rate, as it has been measured while the application runs.

/// Bytes a second. Bytes and seconds are averages, in which the newest time weighs as much as all before it; the rate is taken of the
/// averages. So a time in which little was done, and most of the seconds went elsewhere, says little.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Measured {
    bytes: f64,
    seconds: f64,
    /// Whether there has been a time at all.
    begun: bool,
}

impl Measured {
    /// So many bytes have taken so many seconds.
    pub fn record(&mut self, bytes: u64, seconds: f64) {
        if bytes == 0 || !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let weight = if self.begun { 0.5 } else { 1.0 };
        self.bytes += weight * (bytes as f64 - self.bytes);
        self.seconds += weight * (seconds - self.seconds);
        self.begun = true;
    }

    /// Bytes a second, if anything has been measured.
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
        // Next to nothing has been written, and that quickly or not is no news of the rate.
        rate.record(1, 0.001);
        let now = rate.rate().expect("measured");
        assert!((1990.0..2010.0).contains(&now), "{now}");
        for (bytes, seconds) in [(0, 1.0), (5, 0.0), (5, -1.0), (5, f64::NAN)] {
            rate.record(bytes, seconds);
            assert_eq!(rate.rate(), Some(now));
        }
    }
}
