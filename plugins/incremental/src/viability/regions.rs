//! The regions of a process, each with its history and the decision for its next epoch.
//!
//! A region here is a stretch of 1 MiB of the address space that begins at a multiple of it, whichever mappings lie there. Mappings make poor
//! regions: the kernel joins those that touch, as an allocator's large blocks do, and cuts them where a program protects a page. An address
//! is stable: a heap that grows has new regions at its end. If a mapping goes, its regions' histories go once an epoch finds nothing there.
//! If another mapping replaces it before that, the next epochs correct the histories.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Decision, Expected, History, Load, Method, Predicted, Rates, Reason, Taken};
use crate::blocks::Counts;

/// Bytes of a region.
pub const REGION: u64 = 1 << 20;

/// The bytes to write in one region.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegionChanges {
    /// All memory that has been touched.
    pub memory: u64,
    /// `c`: bytes in pages that were written to.
    pub page_dirty: u64,
    /// The part of `page_dirty` in blocks whose hashes are known.
    pub known: u64,
    /// Bytes outside dirty pages that are written in any case.
    pub again: u64,
}

/// The histories of all regions, by their numbers: address divided by [`REGION`].
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Regions(BTreeMap<u64, History>);

/// The method for each region of an image, and the model's prediction.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The decision for each region with anything to write.
    pub decisions: BTreeMap<u64, Decision>,
    pub predicted: Predicted,
    pub taken: Taken,
}

/// Cuts ranges of addresses at region ends. Returns the regions' numbers, each with the part of a range in it.
pub fn by_region(
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> impl Iterator<Item = (u64, Range<u64>)> {
    ranges.into_iter().flat_map(|range| {
        let numbers = range.start / REGION..range.end.div_ceil(REGION);
        numbers.filter_map(move |number| {
            let start = range.start.max(number * REGION);
            let end = range.end.min((number + 1).saturating_mul(REGION));
            (start < end).then_some((number, start..end))
        })
    })
}

impl Plan {
    /// Returns the addresses of the regions to hash, in order; adjacent ones are joined.
    pub fn hashed(&self) -> Vec<Range<u64>> {
        let mut hashed: Vec<Range<u64>> = Vec::new();
        for (number, decision) in &self.decisions {
            let at = number * REGION..(number + 1).saturating_mul(REGION);
            match hashed.last_mut() {
                _ if decision.method != Method::Hash => (),
                Some(last) if last.end == at.start => last.end = at.end,
                _ => hashed.push(at),
            }
        }
        hashed
    }

    /// Plans an image without an earlier one: all memory is written.
    pub fn whole(rates: Rates, parts: &BTreeMap<u64, RegionChanges>) -> Plan {
        let mut full = Expected::default();
        let mut decisions = BTreeMap::new();
        for (number, part) in parts {
            let load = Load::of(part);
            full.add(rates.t_write_whole(load.memory), load.memory);
            let decision = History::default().decide(&rates, &load, false);
            decisions.insert(*number, decision);
        }
        Plan {
            taken: Taken {
                full: decisions.len() as u64,
                ..Taken::default()
            },
            decisions,
            predicted: Predicted {
                rates,
                alpha: None,
                alpha_hashed: None,
                full,
                page: None,
                hash: None,
                taken: full,
            },
        }
    }
}

impl Load {
    fn of(part: &RegionChanges) -> Load {
        Load {
            memory: part.memory as f64,
            page_dirty: part.page_dirty as f64,
            t_dirty: 0.0,
        }
    }
}

/// The combined alpha of several regions.
#[derive(Default)]
struct Share {
    bytes: f64,
    changed: f64,
}

impl Share {
    fn add(&mut self, bytes: u64, alpha: f64) {
        self.bytes += bytes as f64;
        self.changed += bytes as f64 * (1.0 - alpha);
    }

    fn alpha(&self) -> Option<f64> {
        (self.bytes > 0.0).then(|| 1.0 - self.changed / self.bytes)
    }
}

impl Regions {
    /// Decides for each region with anything to write, by its own alpha; or takes `forced` for all of them.
    ///
    /// The prediction knows which blocks have hashes to compare with. The decision uses only alpha, since a region that is not hashed today
    /// has no hashes tomorrow either. The prediction takes an unknown alpha for 0.
    pub fn decide(
        &self,
        rates: Rates,
        parts: &BTreeMap<u64, RegionChanges>,
        forced: Option<Method>,
    ) -> Plan {
        let fresh = History::default();
        let (mut full, mut page, mut hash, mut taken_in) = <[Expected; 4]>::default().into();
        let (mut all, mut hashed) = (Share::default(), Share::default());
        let mut taken = Taken::default();
        let mut decisions = BTreeMap::new();
        for (number, part) in parts {
            let load = Load::of(part);
            full.add(rates.t_write_whole(load.memory), load.memory);
            let again = part.again as f64;
            for way in [&mut page, &mut hash, &mut taken_in] {
                way.add(rates.t_write_whole(again), again);
            }
            if part.page_dirty == 0 {
                continue;
            }
            let history = self.0.get(number).unwrap_or(&fresh);
            let mut decision = history.decide(&rates, &load, true);
            if let Some(method) = forced {
                (decision.method, decision.reason) = (method, Reason::Forced);
            }
            let c = load.page_dirty;
            let alpha = history.alpha();
            let left_out = alpha.unwrap_or(0.0) * part.known as f64;
            let by_pages = (rates.t_write_whole(c), c);
            let by_hashes = (
                rates.t_hash(c) + rates.t_write_whole(c - left_out),
                c - left_out,
            );
            page.add(by_pages.0, by_pages.1);
            hash.add(by_hashes.0, by_hashes.1);
            if let Some(alpha) = alpha {
                all.add(part.page_dirty, alpha);
            }
            let chosen = match decision.method {
                // All touched memory is page-dirty, or the caller forced this method.
                Method::Full | Method::Page => by_pages,
                Method::Hash => by_hashes,
            };
            taken_in.add(chosen.0, chosen.1);
            match decision.method {
                Method::Full => taken.full += 1,
                Method::Page => taken.page += 1,
                Method::Hash => {
                    taken.hash += 1;
                    taken.looks += u64::from(decision.reason == Reason::Look);
                    if let Some(alpha) = alpha {
                        hashed.add(part.known, alpha);
                    }
                }
            }
            decisions.insert(*number, decision);
        }
        Plan {
            decisions,
            taken,
            predicted: Predicted {
                rates,
                alpha: all.alpha(),
                alpha_hashed: hashed.alpha(),
                full,
                page: Some(page),
                hash: Some(hash),
                taken: taken_in,
            },
        }
    }

    /// Records an epoch that was written as planned, with the counts of the regions that were hashed. Regions that are not in `there`
    /// have gone.
    pub fn record(
        &mut self,
        plan: &Plan,
        counts: &BTreeMap<u64, Counts>,
        there: &BTreeMap<u64, RegionChanges>,
    ) {
        self.0.retain(|number, _| there.contains_key(number));
        for (number, decision) in &plan.decisions {
            let counts = counts.get(number).copied().unwrap_or_default();
            let history = self.0.entry(*number).or_default();
            if decision.reason != Reason::First {
                history.record(decision.method, &counts);
            }
        }
    }

    /// Returns the expected alpha of the region at an address.
    pub fn alpha(&self, address: u64) -> Option<f64> {
        self.0.get(&(address / REGION))?.alpha()
    }
}

#[cfg(test)]
mod tests;
