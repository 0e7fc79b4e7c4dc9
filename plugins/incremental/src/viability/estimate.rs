//! The time of a checkpoint that is written whole, by pages or by hashes.
//!
//! The paper compares a hash-based checkpoint with one that writes `c` bytes. A whole checkpoint writes more than that if some memory
//! is not page-dirty, so the model here takes its size separately. A page-based checkpoint also needs time to mark pages.

use serde::Serialize;

use super::{ModelError, Rates};

/// A way to write an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// All memory.
    Full,
    /// The dirty pages.
    Page,
    /// The changed blocks in dirty pages.
    Hash,
}

/// The memory to be checkpointed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Bytes of all memory.
    pub memory: f64,
    /// Bytes in dirty pages, `c`.
    pub page_dirty: f64,
    /// Seconds spent on marking dirty pages since the last epoch.
    pub t_dirty: f64,
}

/// The cost of a checkpoint, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cost {
    pub method: Method,
    /// Seconds to mark the dirty pages.
    pub t_dirty: f64,
    pub t_hash: f64,
    pub t_write: f64,
    /// The sum of all.
    pub seconds: f64,
    /// Bytes that are written.
    pub written: f64,
}

/// The model's answer for one memory and one pair of rates.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimate {
    #[serde(flatten)]
    pub rates: Rates,
    /// Bytes of all memory.
    pub memory: f64,
    pub c: f64,
    pub alpha: f64,
    pub t_dirty: f64,
    /// `beta_ckpt / beta_hash`.
    pub ratio: f64,
    /// The alpha above which hashing is the fastest way. `null`: there is nothing in dirty pages, and hashing never is.
    pub least_alpha: Option<f64>,
    /// Whether alpha is above it.
    pub pays: bool,
    /// The costs of the full way, by pages, and by hashes.
    pub costs: [Cost; 3],
    /// The fastest way; of equally fast ones, the simplest.
    pub fastest: Method,
}

impl Load {
    /// Makes a load in which a share of the memory lies in dirty pages.
    pub fn new(memory: u64, dirty: f64, t_dirty: f64) -> Result<Load, ModelError> {
        let memory = memory as f64;
        let page_dirty = share("dirty", dirty)? * memory;
        if !(t_dirty >= 0.0 && t_dirty.is_finite()) {
            return Err(ModelError::Time(t_dirty));
        }
        Ok(Load {
            memory,
            page_dirty,
            t_dirty,
        })
    }

    /// Returns the alpha above which hashing is faster than both other ways. It is the ratio of the rates, by equation 3 against
    /// pages. It is more if marking pages takes longer than writing the pages that are not dirty. If all pages are dirty, that is
    /// equation 5.
    pub fn least_alpha(&self, rates: &Rates) -> Option<f64> {
        let c = self.page_dirty;
        let not_written = rates.t_write_whole(self.memory - c);
        let marking = (self.t_dirty - not_written).max(0.0);
        let least = (c > 0.0).then(|| rates.least_alpha(c, marking));
        least.flatten()
    }

    /// Returns the costs of the three ways.
    pub fn costs(&self, rates: &Rates, alpha: f64) -> [Cost; 3] {
        let c = self.page_dirty;
        [
            Cost::of(Method::Full, 0.0, 0.0, rates, self.memory),
            Cost::of(Method::Page, self.t_dirty, 0.0, rates, c),
            Cost::of(
                Method::Hash,
                self.t_dirty,
                rates.t_hash(c),
                rates,
                (1.0 - alpha) * c,
            ),
        ]
    }
}

impl Cost {
    fn of(method: Method, t_dirty: f64, t_hash: f64, rates: &Rates, written: f64) -> Cost {
        let t_write = rates.t_write_whole(written);
        Cost {
            method,
            t_dirty,
            t_hash,
            t_write,
            seconds: t_dirty + t_hash + t_write,
            written,
        }
    }

    /// Returns the fastest way, or the simpler one of two equally fast ones.
    pub fn fastest(costs: &[Cost; 3]) -> Method {
        let [full, page, hash] = costs;
        let best = if page.seconds < full.seconds {
            page
        } else {
            full
        };
        let best = if hash.seconds < best.seconds {
            hash
        } else {
            best
        };
        best.method
    }
}

impl Estimate {
    /// Computes the model's answer. `changed` is the share of the page-dirty bytes that a hash-based checkpoint writes, 1
    /// - alpha.
    pub fn of(rates: Rates, load: Load, changed: f64) -> Result<Estimate, ModelError> {
        let alpha = 1.0 - share("changed", changed)?;
        let (c, t_dirty) = (load.page_dirty, load.t_dirty);
        let costs = load.costs(&rates, alpha);
        let fastest = Cost::fastest(&costs);
        Ok(Estimate {
            rates,
            memory: load.memory,
            c,
            alpha,
            t_dirty,
            ratio: rates.ratio(),
            least_alpha: load.least_alpha(&rates),
            pays: fastest == Method::Hash,
            costs,
            fastest,
        })
    }
}

fn share(name: &'static str, value: f64) -> Result<f64, ModelError> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(ModelError::Share { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(dirty: f64, changed: f64, t_dirty: f64) -> Estimate {
        let rates = Rates::new(1e9, 4e9).expect("rates");
        let load = Load::new(16_000_000_000, dirty, t_dirty).expect("a load");
        Estimate::of(rates, load, changed).expect("an estimate")
    }

    #[test]
    fn each_way_takes_what_the_equations_say() {
        let Estimate {
            c,
            alpha,
            costs: [full, page, hash],
            ..
        } = estimate(0.5, 0.25, 1.0);
        assert_eq!((c, alpha), (8e9, 0.75));
        assert_eq!((full.seconds, full.written), (16.0, 16e9));
        assert_eq!((page.seconds, page.written), (1.0 + 8.0, 8e9));
        assert_eq!((hash.t_dirty, hash.t_hash, hash.t_write), (1.0, 2.0, 2.0));
        assert_eq!((hash.seconds, hash.written), (5.0, 2e9));
    }

    #[test]
    fn the_fastest_way_and_of_equals_the_simplest() {
        assert_eq!(estimate(0.5, 0.25, 0.0).fastest, Method::Hash);
        // Hashing costs as much as an alpha of a quarter saves.
        assert_eq!(estimate(0.5, 0.75, 0.0).fastest, Method::Page);
        assert_eq!(estimate(1.0, 1.0, 0.0).fastest, Method::Full);
        assert_eq!(estimate(0.5, 0.25, 20.0).fastest, Method::Full);
        let nothing = estimate(0.0, 0.25, 0.0);
        assert_eq!((nothing.fastest, nothing.pays), (Method::Page, false));
        assert_eq!(nothing.least_alpha, None);
    }

    /// Half of 16 GB takes 8 s to write, so marking may take that long.
    #[test]
    fn marking_pages_may_take_as_long_as_writing_the_others() {
        let least = |t_dirty| estimate(0.5, 0.25, t_dirty).least_alpha;
        assert_eq!([least(0.0), least(8.0)], [Some(0.25); 2]);
        assert_eq!([least(10.0), least(20.0)], [Some(0.5), Some(1.75)]);
        let all = estimate(1.0, 0.25, 2.0).least_alpha;
        assert_eq!(
            all,
            Rates::new(1e9, 4e9).expect("rates").least_alpha(16e9, 2.0)
        );
    }

    #[test]
    fn what_is_no_share_is_refused() {
        let rates = Rates::new(1.0, 1.0).expect("rates");
        let load = Load::new(1, 0.5, 0.0).expect("a load");
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert!(Load::new(1, wrong, 0.0).is_err());
            let error = Estimate::of(rates, load, wrong).expect_err("no share");
            assert!(error.to_string().contains("is not a share: give 0 to 1"));
        }
        assert!(Load::new(1, 0.5, -1.0).is_err() && Load::new(1, 0.5, f64::NAN).is_err());
    }
}
