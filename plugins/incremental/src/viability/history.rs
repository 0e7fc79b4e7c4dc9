//! A region's last epochs, and what they predict for its next one.
//!
//! Alpha is predicted from the page-dirty bytes and the written ones among them. Both are averages over the epochs that were hashed, in
//! which each epoch weighs a fixed share of the one after it, hashed or not; alpha is computed from the averages. So an epoch with little
//! data has little influence.
//!
//! An epoch that is not hashed does not tell what hashing would have saved. A region that has been written in another way for long is
//! hashed again now and then: twice, since the first time makes the hashes that the second compares with.

use serde::Serialize;

use super::{Cost, Load, Method, Rates};
use crate::blocks::Counts;

/// A region is hashed again after this many epochs without a measured alpha.
pub const LOOK_AGAIN: u32 = 8;

/// The most epochs in a row that are hashed as a look.
const LOOKS: u32 = 2;

/// The history of one region.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    weight: f64,
    /// Page-dirty bytes, and the written ones among them, on average over epochs that hashed.
    page_dirty: f64,
    changed: f64,
    /// Whether there has been an epoch that measured alpha.
    measured: bool,
    /// Epochs since then, or since a look that measured nothing.
    since: u32,
    looks: u32,
}

/// The method for a region's next epoch, and the reason.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Decision {
    pub method: Method,
    pub reason: Reason,
}

/// The reason for a method.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// There is no earlier epoch to add to.
    First,
    /// The model's times with this alpha decided.
    Alpha(f64),
    /// Hashing would not pay even with an alpha of 1.
    NeverPays,
    /// The region is hashed to measure alpha.
    Look,
    /// Alpha is not known, and the last look measured nothing.
    Unknown,
    /// The caller forced a method.
    Forced,
}

impl Default for History {
    /// The newest epoch weighs as much as all before it.
    fn default() -> History {
        History::new(0.5)
    }
}

impl History {
    /// Makes the history of an unknown region. `weight` is the weight of the newest epoch, of 1. A weight outside of 0 to 1 becomes the
    /// nearer of the two.
    pub fn new(weight: f64) -> History {
        History {
            weight: weight.clamp(0.0, 1.0),
            page_dirty: 0.0,
            changed: 0.0,
            measured: false,
            since: LOOK_AGAIN,
            looks: 0,
        }
    }

    /// Records an epoch that was written with this method. `counts` matter only if it was hashed.
    pub fn record(&mut self, method: Method, counts: &Counts) {
        let (page_dirty, changed) = (counts.page_dirty_known as f64, counts.changed_known as f64);
        if method != Method::Hash {
            self.since = self.since.saturating_add(1);
        } else if page_dirty > 0.0 {
            // Epochs without hashing age the averages, too.
            let epochs = i32::try_from(self.since)
                .unwrap_or(i32::MAX)
                .saturating_add(1);
            let old = match self.measured {
                true => (1.0 - self.weight).powi(epochs),
                false => 0.0,
            };
            let weight = 1.0 - old;
            self.page_dirty += weight * (page_dirty - self.page_dirty);
            self.changed += weight * (changed - self.changed);
            self.measured = true;
            (self.since, self.looks) = (0, 0);
        } else {
            self.looks += 1;
            if self.looks == LOOKS {
                (self.since, self.looks) = (0, 0);
            }
        }
    }

    /// Returns the expected alpha.
    pub fn alpha(&self) -> Option<f64> {
        (self.measured && self.page_dirty > 0.0).then(|| 1.0 - self.changed / self.page_dirty)
    }

    /// Chooses the method for the next epoch of this region. `load` is the region's own; `has_base` says whether there is an epoch
    /// to add to.
    pub fn decide(&self, rates: &Rates, load: &Load, has_base: bool) -> Decision {
        let by_times = |alpha: f64, reason| Decision {
            method: Cost::fastest(&load.costs(rates, alpha)),
            reason,
        };
        let without_hashing = |reason| {
            let [full, page, _] = load.costs(rates, 0.0);
            let method = match page.seconds < full.seconds {
                true => Method::Page,
                false => Method::Full,
            };
            Decision { method, reason }
        };
        if !has_base {
            let (method, reason) = (Method::Full, Reason::First);
            return Decision { method, reason };
        }
        if by_times(1.0, Reason::NeverPays).method != Method::Hash {
            return without_hashing(Reason::NeverPays);
        }
        match self.alpha() {
            _ if self.since >= LOOK_AGAIN => Decision {
                method: Method::Hash,
                reason: Reason::Look,
            },
            Some(alpha) => by_times(alpha, Reason::Alpha(alpha)),
            None => without_hashing(Reason::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(page_dirty_known: u64, changed_known: u64) -> Counts {
        Counts {
            page_dirty_known,
            changed_known,
            ..Counts::default()
        }
    }

    fn hashed(history: &mut History, page_dirty: u64, changed: u64) {
        history.record(Method::Hash, &counts(page_dirty, changed));
    }

    fn of(ratio: f64) -> (Rates, Load) {
        let rates = Rates::new(ratio * 1e9, 1e9).expect("rates");
        (rates, Load::new(1 << 20, 0.5, 0.0).expect("a load"))
    }

    #[test]
    fn alpha_follows_the_last_epochs_by_their_sizes() {
        let mut history = History::new(0.5);
        assert_eq!(history.alpha(), None);
        hashed(&mut history, 1000, 200);
        assert_eq!(history.alpha(), Some(0.8));
        hashed(&mut history, 1000, 200);
        assert_eq!(history.alpha(), Some(0.8));
        hashed(&mut history, 1000, 800);
        assert_eq!(history.alpha(), Some(0.5));
        // One dirty page more or less changes almost nothing.
        hashed(&mut history, 1, 1);
        assert!((history.alpha().expect("known") - 0.5).abs() < 0.001);
        for _ in 0..20 {
            hashed(&mut history, 1000, 0);
        }
        assert!(history.alpha().expect("known") > 0.99);
        // Blocks may be larger than pages.
        let mut large = History::default();
        hashed(&mut large, 4096, 65_536);
        assert_eq!(large.alpha(), Some(-15.0));
    }

    #[test]
    fn the_first_epoch_is_whole() {
        let (rates, load) = of(0.1);
        let decision = History::default().decide(&rates, &load, false);
        assert_eq!(decision.method, Method::Full);
        assert_eq!(decision.reason, Reason::First);
    }

    #[test]
    fn hashing_is_chosen_where_the_ratio_is_below_alpha() {
        let mut history = History::default();
        hashed(&mut history, 1000, 600);
        for (ratio, method) in [(0.39, Method::Hash), (0.41, Method::Page)] {
            let (rates, load) = of(ratio);
            let decision = history.decide(&rates, &load, true);
            assert_eq!(decision.method, method, "{ratio}");
            assert_eq!(decision.reason, Reason::Alpha(0.4));
        }
        let (rates, load) = of(1.5);
        let decision = history.decide(&rates, &load, true);
        assert_eq!(decision.method, Method::Page);
        assert_eq!(decision.reason, Reason::NeverPays);
    }

    #[test]
    fn a_region_that_does_not_pay_is_looked_at_again() {
        let (rates, load) = of(0.5);
        let mut history = History::default();
        assert_eq!(history.decide(&rates, &load, true).reason, Reason::Look);
        hashed(&mut history, 1000, 900);
        let mut ways = Vec::new();
        for epoch in 0..12 {
            let Decision { method, .. } = history.decide(&rates, &load, true);
            ways.push(method);
            // After epochs by pages the first look finds no hashes to compare with.
            let known = if epoch == LOOK_AGAIN { 0 } else { 1000 };
            history.record(method, &counts(known, known / 10));
        }
        assert!(ways[..8].iter().all(|way| *way == Method::Page), "{ways:?}");
        // The region has changed its behaviour.
        assert!(ways[8..].iter().all(|way| *way == Method::Hash), "{ways:?}");
    }

    #[test]
    fn what_is_never_known_is_not_looked_at_for_ever() {
        let (rates, load) = of(0.5);
        let mut history = History::default();
        let mut reasons = Vec::new();
        for _ in 0..20 {
            let Decision { method, reason } = history.decide(&rates, &load, true);
            reasons.push(reason == Reason::Look);
            assert_eq!(reason == Reason::Look, method == Method::Hash);
            history.record(method, &Counts::default());
        }
        let looks: Vec<usize> = (0..20).filter(|epoch| reasons[*epoch]).collect();
        assert_eq!(looks, [0, 1, 10, 11]);
    }
}
