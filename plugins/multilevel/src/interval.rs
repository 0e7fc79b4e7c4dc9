//! How often to write a checkpoint.
//!
//! A job computes for an interval, writes a checkpoint, and so on; failures come at random, with exponential gaps of a mean
//! *time to failure*; each loses what was computed since the last checkpoint and costs a restart. Short intervals waste time
//! on checkpoints, long ones on computing again.
//!
//! * J. W. Young, "A first order approximation to the optimum checkpoint interval", Commun. ACM 17(9), 1974.
//! * J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006: its
//!   expected time (equation 20) and its estimate (equation 37).

mod automatic;
mod figures;
mod least_squares;
mod report;
mod simulate;
mod streamed;
mod tables;

pub use automatic::{Automatic, Chosen, Measured};
pub use figures::{Figure, figures, points};
pub use report::{Fit, Models, Streaming, models};
pub use simulate::{Totals, simulate};
pub use streamed::{FitError, Model, Sample, SamplesError, fit, parse_samples};
pub use tables::{CHECKPOINT, ELEMENTS, RESTART, STREAMS, WASTED, recomputing, samples};

use crate::units::show_seconds;
use serde::Serialize;

/// The costs of failures and checkpoints, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Costs {
    /// Mean time between failures of the whole job.
    pub mttf: f64,
    /// The time that a checkpoint stops the application.
    pub checkpoint: f64,
    /// The time from a failure until the application computes again.
    pub restart: f64,
}

/// An invalid cost.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum CostError {
    #[error("{field}: must be a finite time greater than zero, not {value} s")]
    NotPositive { field: &'static str, value: f64 },
    #[error("{field}: must be a finite time of zero or more, not {value} s")]
    Negative { field: &'static str, value: f64 },
    #[error(
        "mttf: {} is too short for a {field} of {}: almost none would finish between failures",
        show_seconds(*.mttf), show_seconds(*.time)
    )]
    Hopeless {
        field: &'static str,
        mttf: f64,
        time: f64,
    },
}

/// An interval and its cost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// Seconds of computing between two checkpoints.
    pub seconds: f64,
    /// The share of the whole time that is not progress: checkpoints, computing again, restarts.
    pub waste: f64,
}

/// The best interval and the classic estimates of it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Advice {
    pub costs: Costs,
    pub best: Interval,
    pub young: Interval,
    pub daly: Interval,
}

impl Costs {
    /// Checks the times, also against each other.
    pub fn checked(mttf: f64, checkpoint: f64, restart: f64) -> Result<Costs, CostError> {
        for (field, value) in [("mttf", mttf), ("checkpoint", checkpoint)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(CostError::NotPositive { field, value });
            }
        }
        if !(restart >= 0.0 && restart.is_finite()) {
            return Err(CostError::Negative {
                field: "restart",
                value: restart,
            });
        }
        // Beyond this limit the expected time is thousands of times the work, and soon larger than any number.
        for (field, time) in [("checkpoint", checkpoint), ("restart", restart)] {
            if time > 5.0 * mttf {
                return Err(CostError::Hopeless { field, mttf, time });
            }
        }
        Ok(Costs {
            mttf,
            checkpoint,
            restart,
        })
    }

    /// Returns the expected time for `work` seconds of computing with a checkpoint after every `interval` seconds: Daly's
    /// equation 20, exact for exponential failures, in checkpoints and restarts as well.
    pub fn expected_time(&self, work: f64, interval: f64) -> f64 {
        let each =
            (self.restart / self.mttf).exp() * ((interval + self.checkpoint) / self.mttf).exp_m1();
        self.mttf * each * work / interval
    }

    /// Returns the share of the expected time that is no progress.
    pub fn waste(&self, interval: f64) -> f64 {
        1.0 - 1.0 / self.expected_time(1.0, interval)
    }

    fn interval(&self, seconds: f64) -> Interval {
        Interval {
            seconds,
            waste: self.waste(seconds),
        }
    }

    /// Returns Young's first-order estimate, `sqrt(2 C M)`.
    pub fn young(&self) -> Interval {
        self.interval((2.0 * self.checkpoint * self.mttf).sqrt())
    }

    /// Returns Daly's higher-order estimate.
    pub fn daly(&self) -> Interval {
        let ratio = self.checkpoint / (2.0 * self.mttf);
        let seconds = if ratio < 1.0 {
            let series = 1.0 + ratio.sqrt() / 3.0 + ratio / 9.0;
            (2.0 * self.checkpoint * self.mttf).sqrt() * series - self.checkpoint
        } else {
            self.mttf
        };
        self.interval(seconds)
    }

    /// Returns the interval with the least expected time. The derivative is zero where `x + ln(1 - x) = -C/M`, with `x` the
    /// interval over the time to failure. The left side falls from zero without end, so bisection finds the only solution.
    pub fn best(&self) -> Interval {
        let wanted = -self.checkpoint / self.mttf;
        let (mut low, mut high) = (0.0f64, 1.0f64);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if middle + (-middle).ln_1p() > wanted {
                low = middle
            } else {
                high = middle
            }
        }
        self.interval((low + high) / 2.0 * self.mttf)
    }

    /// Returns the best interval beside the classic estimates.
    pub fn advice(&self) -> Advice {
        Advice {
            costs: *self,
            best: self.best(),
            young: self.young(),
            daly: self.daly(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_case_agrees_with_the_literature() {
        // Daly 2006, section 5: M = 24 h, C = 5 min: about 2 h.
        let costs = Costs::checked(86_400.0, 300.0, 600.0).expect("costs");
        assert!((costs.young().seconds - 7200.0).abs() < 1.0);
        assert!((costs.daly().seconds - 7000.0).abs() < 10.0);
        assert!((costs.best().seconds - costs.daly().seconds).abs() < 1.0);
    }

    #[test]
    fn senseless_costs_are_named() {
        let message = |mttf, checkpoint, restart| {
            Costs::checked(mttf, checkpoint, restart)
                .expect_err("bad")
                .to_string()
        };
        assert_eq!(
            message(0.0, 1.0, 1.0),
            "mttf: must be a finite time greater than zero, not 0 s"
        );
        assert_eq!(
            message(1.0, f64::NAN, 1.0),
            "checkpoint: must be a finite time greater than zero, not NaN s"
        );
        assert_eq!(
            message(1.0, 1.0, -1.0),
            "restart: must be a finite time of zero or more, not -1 s"
        );
        assert_eq!(
            message(60.0, 3600.0, 1.0),
            "mttf: 1 min is too short for a checkpoint of 1 h: almost none would finish between failures"
        );
        assert_eq!(
            message(43_200.0, 40.0, 86.4e9),
            "mttf: 12 h is too short for a restart of 1000000 d: almost none would finish between failures"
        );
    }

    proptest! {
        #[test]
        fn the_best_interval_wastes_least(
            mttf in 60.0f64..1e7, share in 1e-6f64..4.0, restart in 0.0f64..4.0, factor in 0.2f64..5.0,
        ) {
            let costs = Costs::checked(mttf, share * mttf, restart * mttf).expect("costs");
            let best = costs.best();
            for other in [costs.young(), costs.daly(), costs.interval(best.seconds * factor)] {
                prop_assert!(other.waste >= best.waste - 1e-12, "{other:?} {best:?}");
            }
            prop_assert!(best.seconds < mttf);
        }

        #[test]
        fn dalys_estimate_is_near_the_best_where_checkpoints_are_short(mttf in 60.0f64..1e7, share in 1e-6f64..0.1) {
            let costs = Costs::checked(mttf, share * mttf, 0.0).expect("costs");
            let (daly, best) = (costs.daly(), costs.best());
            prop_assert!((daly.seconds / best.seconds - 1.0).abs() < 0.01, "{daly:?} {best:?}");
        }
    }
}
