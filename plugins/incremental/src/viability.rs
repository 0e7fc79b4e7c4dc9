//! When hashing pays: the paper's model, and the time of a checkpoint in each of three ways.
//!
//! Names are the paper's: `c` is the size of a page-based checkpoint in bytes, `alpha` the share of it that a hash-based one leaves
//! out, `beta_hash` and `beta_ckpt` the rates of one process in bytes a second, `t_...` times in seconds. Hashing pays, against page-based
//! and against whole checkpoints, where
//!
//! ```text
//! T_hash + T_write_hash < T_write_whole                                         (1)
//! c / beta_hash + (1 - alpha) c / beta_ckpt < c / beta_ckpt                     (2)
//! beta_ckpt / beta_hash < alpha                                                 (3)
//!
//! T_hash + T_write_hash + T_dirty < T_write_whole                               (4)
//! c / beta_hash + (1 - alpha) c / beta_ckpt + T_dirty < c / beta_ckpt           (5)
//! beta_ckpt / beta_hash < alpha, where T_dirty is 0                             (6)
//! ```

mod estimate;
mod hasher;
mod history;
mod measured;
mod record;
mod regions;

pub use estimate::{Cost, Estimate, Load, Method};
pub use hasher::Hasher;
pub use history::{Decision, History, LOOK_AGAIN, Reason};
pub use measured::Measured;
pub use record::{EpochMeasurement, Expected, OfDevices, Predicted, Record, Taken};
pub use regions::{Plan, REGION, RegionChanges, Regions, by_region};

use serde::{Deserialize, Serialize};

/// How fast one process hashes and writes, in bytes a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rates {
    pub beta_ckpt: f64,
    pub beta_hash: f64,
}

/// Input that the model cannot use.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{name}: {value} is not a rate: give more than 0 bytes a second")]
    Rate { name: &'static str, value: f64 },
    #[error("{name}: {value} is not a share: give 0 to 1")]
    Share { name: &'static str, value: f64 },
    #[error("t_dirty: {0} is not a time: give 0 s or more")]
    Time(f64),
}

impl Rates {
    pub fn new(beta_ckpt: f64, beta_hash: f64) -> Result<Rates, ModelError> {
        for (name, value) in [("beta_ckpt", beta_ckpt), ("beta_hash", beta_hash)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(ModelError::Rate { name, value });
            }
        }
        Ok(Rates {
            beta_ckpt,
            beta_hash,
        })
    }

    /// Returns the ratio that equations 3 and 6 compare with alpha.
    pub fn ratio(&self) -> f64 {
        self.beta_ckpt / self.beta_hash
    }

    pub fn t_hash(&self, c: f64) -> f64 {
        c / self.beta_hash
    }

    pub fn t_write_hash(&self, c: f64, alpha: f64) -> f64 {
        (1.0 - alpha) * c / self.beta_ckpt
    }

    pub fn t_write_whole(&self, c: f64) -> f64 {
        c / self.beta_ckpt
    }

    /// Equations 4 and 5; with a `t_dirty` of 0, equations 1 and 2.
    pub fn pays_in_time(&self, c: f64, alpha: f64, t_dirty: f64) -> bool {
        self.t_hash(c) + self.t_write_hash(c, alpha) + t_dirty < self.t_write_whole(c)
    }

    /// Equations 3 and 6.
    pub fn pays(&self, alpha: f64) -> bool {
        self.ratio() < alpha
    }

    /// Returns the alpha above which equation 5 holds, or `None` if `c` is 0 and marking it takes time.
    pub fn least_alpha(&self, c: f64, t_dirty: f64) -> Option<f64> {
        if t_dirty == 0.0 {
            return Some(self.ratio());
        }
        (c > 0.0).then(|| self.ratio() + t_dirty * self.beta_ckpt / c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_rate_is_refused() {
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Rates::new(wrong, 1.0).is_err() && Rates::new(1.0, wrong).is_err());
        }
        let error = Rates::new(1.0, 0.0).expect_err("no rate").to_string();
        assert_eq!(
            error,
            "beta_hash: 0 is not a rate: give more than 0 bytes a second"
        );
    }

    #[test]
    fn the_terms_of_the_equations() {
        let rates = Rates::new(1e9, 4e9).expect("rates");
        assert_eq!(rates.t_hash(8e9), 2.0);
        assert_eq!(rates.t_write_hash(8e9, 0.75), 2.0);
        assert_eq!(rates.t_write_whole(8e9), 8.0);
        assert_eq!(rates.ratio(), 0.25);
        // 2 + 2 + 4 is not less than 8. With a smaller `t_dirty` the sum is less.
        assert!(!rates.pays_in_time(8e9, 0.75, 4.0) && rates.pays_in_time(8e9, 0.75, 3.9));
        assert_eq!(rates.least_alpha(8e9, 4.0), Some(0.75));
        assert_eq!(rates.least_alpha(0.0, 0.0), Some(0.25));
        assert_eq!(rates.least_alpha(0.0, 1.0), None);
        assert!(rates.pays(0.26) && !rates.pays(0.25));
    }
}
