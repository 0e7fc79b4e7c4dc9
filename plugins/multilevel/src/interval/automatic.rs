//! `--interval auto`: the interval of least waste, chosen anew from what every epoch has cost.
//!
//! An epoch costs twice. While the application stands still, nothing is computed. Then it may run on while the images are written or copied to the slow
//! tier, and a failure in that time still falls back to the epoch before. The first cost decides the interval ([`Costs::best`]). The second adds to each
//! failure: what was computed meanwhile is lost too. It does not move the minimum, but the writing takes a share of the machine, and the next epoch
//! cannot begin before it is over.

use serde::Serialize;

use super::Costs;

/// The weight of the newest epoch among those so far: what an epoch costs drifts with the application's memory and with the file system's load.
const NEWEST: f64 = 0.4;
/// The share of the machine that writing takes while the application runs on.
const BESIDE: f64 = 0.1;
/// The least time to the first epoch, which measures, and the part of the time to failure that it may be otherwise.
const FIRST: f64 = 30.0;
const FIRST_SHARE: f64 = 0.02;
/// The shortest interval. An epoch has costs that are not seen from here.
const SHORTEST: f64 = 5.0;
/// The longest interval before anything is known, and the longest of all, as a part of the time to failure.
const LONGEST_FIRST: f64 = 600.0;

/// The cost of an epoch, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The application stood still.
    pub stopped: f64,
    /// From the beginning of the stop until the epoch was durable.
    pub durable: f64,
}

/// An interval and its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chosen {
    /// Seconds of computing between two stops.
    pub seconds: f64,
    /// The share of the time that is expected to be lost; `None`: nothing is measured yet.
    pub lost: Option<f64>,
    /// The costs that were measured, the newest with the most weight.
    pub stopped: f64,
    pub durable: f64,
    pub restart: f64,
    pub mttf: f64,
}

/// Chooses intervals.
#[derive(Clone, Debug)]
pub struct Automatic {
    mttf: f64,
    measured: Option<Measured>,
    restart: Option<f64>,
}

impl Automatic {
    /// For a job that fails once in `mttf` seconds on average.
    pub fn new(mttf: f64) -> Automatic {
        Automatic {
            mttf: mttf.max(1.0),
            measured: None,
            restart: None,
        }
    }

    /// Takes in what an epoch has cost.
    pub fn measure(&mut self, newest: Measured) {
        let mean = |before: f64, newest: f64| before + NEWEST * (newest - before);
        self.measured = Some(match self.measured {
            None => newest,
            Some(before) => Measured {
                stopped: mean(before.stopped, newest.stopped),
                durable: mean(before.durable, newest.durable),
            },
        });
    }

    /// Takes in how long the launch has taken until its ranks computed.
    pub fn started(&mut self, seconds: f64) {
        self.restart = Some(seconds);
    }

    /// The interval from now on.
    pub fn chosen(&self) -> Chosen {
        let Some(Measured { stopped, durable }) = self.measured else {
            let first = (self.mttf * FIRST_SHARE).clamp(FIRST, LONGEST_FIRST);
            return Chosen {
                seconds: first.min(self.mttf),
                lost: None,
                stopped: 0.0,
                durable: 0.0,
                restart: self.restart.unwrap_or(0.0),
                mttf: self.mttf,
            };
        };
        let beside = (durable - stopped).max(0.0);
        // An epoch that costs more than the time between failures leaves nothing to choose.
        let cost = (stopped + BESIDE * beside).clamp(1e-3, 4.0 * self.mttf);
        // Reading takes about as long as writing, unless a restart has been seen.
        let restart = self.restart.unwrap_or(0.0).max(durable);
        let costs = Costs {
            mttf: self.mttf,
            checkpoint: cost,
            restart: (restart + beside).min(4.0 * self.mttf),
        };
        let seconds = costs.best().seconds.max(SHORTEST).max(beside);
        Chosen {
            seconds,
            lost: Some(costs.waste(seconds)),
            stopped,
            durable,
            restart,
            mttf: self.mttf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_first_epoch_comes_early_and_measures() {
        let week = Automatic::new(7.0 * 86_400.0).chosen();
        assert_eq!((week.seconds, week.lost), (600.0, None));
        assert_eq!(Automatic::new(600.0).chosen().seconds, 30.0);
        assert_eq!(Automatic::new(20.0).chosen().seconds, 20.0);
    }

    #[test]
    fn it_follows_costs_that_change() {
        let mut automatic = Automatic::new(86_400.0);
        let seconds = |automatic: &Automatic| automatic.chosen().seconds;
        automatic.measure(Measured {
            stopped: 1.0,
            durable: 1.0,
        });
        let before = seconds(&automatic);
        for _ in 0..8 {
            automatic.measure(Measured {
                stopped: 16.0,
                durable: 16.0,
            });
        }
        let ratio = seconds(&automatic) / before;
        assert!((3.7..4.2).contains(&ratio), "{ratio}");
        // An epoch that takes longer than a failure comes is nothing to compute with, but no reason to stop.
        automatic = Automatic::new(600.0);
        automatic.measure(Measured {
            stopped: 1e5,
            durable: 1e6,
        });
        assert!(seconds(&automatic).is_finite());
    }
}
