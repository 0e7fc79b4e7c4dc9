//! Synthetic traces: every size drawn from the whole distribution of the RTM trace.
//!
//! Section V.B of the paper: a histogram of all checkpoint sizes is the template, every snapshot captures the full range.

use super::{Trace, gpu_names};
use crate::random::Dice;

/// Bins of the template.
const BINS: usize = 100;

impl Trace {
    /// Makes `snapshots` snapshots of `processes` processes.
    pub fn synthetic(processes: usize, snapshots: usize, seed: u64) -> Trace {
        let mut template: Vec<u64> = Trace::rtm(seed).snapshots.concat();
        template.sort_unstable();
        let most = template[template.len() - 1] + 1;
        let width = most.div_ceil(BINS as u64);
        let mut below = [0u32; BINS + 1];
        for size in &template {
            below[(size / width) as usize + 1] += 1;
        }
        for bin in 0..BINS {
            below[bin + 1] += below[bin];
        }
        let mut dice = Dice::new(seed ^ 0x5eed);
        let mut draw = || {
            let rank = (dice.unit() * template.len() as f64) as u32;
            let bin = below.partition_point(|&count| count <= rank) - 1;
            bin as u64 * width + (dice.unit() * width as f64) as u64
        };
        let mut trace = Trace::of(gpu_names(processes));
        trace.snapshots = (0..snapshots)
            .map(|_| (0..processes).map(|_| draw()).collect())
            .collect();
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_rtm_distribution_in_every_part_of_the_trace() {
        let sorted = |trace: &Trace, snapshots: std::ops::Range<usize>| {
            let mut sizes = trace.snapshots()[snapshots].concat();
            sizes.sort_unstable();
            sizes
        };
        let (rtm, synthetic) = (Trace::rtm(1), Trace::synthetic(8, 2000, 1));
        let template = sorted(&rtm, 0..776);
        for part in [0..1000, 1000..2000] {
            let sizes = sorted(&synthetic, part);
            for percent in [10, 25, 50, 75, 90] {
                let at = |sizes: &[u64]| sizes[sizes.len() * percent / 100] as f64;
                assert!(
                    (at(&sizes) - at(&template)).abs() < 6e6,
                    "{percent}: {} {}",
                    at(&sizes),
                    at(&template)
                );
            }
        }
    }
}
