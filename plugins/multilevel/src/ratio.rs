//! Exact times: bytes over bytes per second, never rounded.
//!
//! The schedulers compare and add only whole numbers; a blocking time is the quotient of two of them.

use std::cmp::Ordering;
use std::fmt;

/// A time in seconds as an exact fraction in lowest terms, `bytes / bandwidth`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seconds {
    bytes: u64,
    bandwidth: u64,
}

impl Seconds {
    pub const ZERO: Seconds = Seconds {
        bytes: 0,
        bandwidth: 1,
    };

    /// Returns the time of `bytes` at `bandwidth` bytes per second. The bandwidth must not be zero.
    pub fn new(bytes: u64, bandwidth: u64) -> Seconds {
        assert!(bandwidth > 0, "a transfer without bandwidth takes for ever");
        let divisor = gcd(bytes, bandwidth);
        Seconds {
            bytes: bytes / divisor,
            bandwidth: bandwidth / divisor,
        }
    }

    pub fn numerator(self) -> u64 {
        self.bytes
    }

    pub fn denominator(self) -> u64 {
        self.bandwidth
    }

    pub fn as_secs_f64(self) -> f64 {
        self.bytes as f64 / self.bandwidth as f64
    }

    /// Returns the whole pieces of `piece` bytes that cross a link of `bandwidth` in this time.
    pub fn pieces_at(self, bandwidth: u64, piece: u64) -> u64 {
        let wide = u128::from(self.bytes) * u128::from(bandwidth);
        let divisor = u128::from(self.bandwidth) * u128::from(piece);
        // Division of 64-bit numbers is several times as fast, and nearly always enough.
        match (u64::try_from(wide), u64::try_from(divisor)) {
            (Ok(wide), Ok(divisor)) => wide / divisor,
            _ => u64::try_from(wide / divisor).unwrap_or(u64::MAX),
        }
    }
}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Seconds) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Seconds) -> Ordering {
        let left = u128::from(self.bytes) * u128::from(other.bandwidth);
        let right = u128::from(other.bytes) * u128::from(self.bandwidth);
        left.cmp(&right)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::units::show_seconds(self.as_secs_f64()))
    }
}

impl serde::Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_secs_f64())
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_compare_exactly_where_floating_point_cannot() {
        let third = Seconds::new(u64::MAX / 3, u64::MAX);
        let nearly = Seconds::new(u64::MAX / 3 - 1, u64::MAX);
        assert_eq!(third.as_secs_f64(), nearly.as_secs_f64());
        assert!(nearly < third);
    }

    #[test]
    fn pieces_are_rounded_down_whatever_the_size_of_the_numbers() {
        let time = Seconds::new(20, 3);
        assert_eq!(time.pieces_at(3, 1), 20);
        assert_eq!(time.pieces_at(1, 1), 6);
        assert_eq!(time.pieces_at(3, 7), 2);
        let long = Seconds::new(1 << 60, 3);
        assert_eq!(long.pieces_at(1 << 20, 1 << 20), (1 << 60) / 3);
    }
}
