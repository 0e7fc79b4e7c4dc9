//! A trace like the paper's reverse time migration, made from its published statistics.
//!
//! Published (sections V.B to V.D): 8 GPUs, 776 snapshots, about 53 GB a GPU in all; the average grows almost linearly up to
//! snapshot 400 and follows an arbitrary distribution after it; its 50th, 75th and 98th percentiles are about 80, 128 and
//! 160 MB; up to 107 MB, 26 times, between the smallest and the largest checkpoint of a snapshot; with 80 MB free there are
//! senders and receivers only between snapshots 350 and 450, only receivers before and only senders after.
//!
//! Together these leave little freedom. A straight line to 80 MB at snapshot 400, followed by averages with those
//! percentiles, adds up to more than 60 GB. So the line ends lower, at 40 MB, and the average passes 80 MB, the median, in a
//! steep rise just before snapshot 400; later averages stay near the lower end of each quarter. The widest snapshot is in
//! that rise: from 4.28 to 111.28 MB it has both the 107 MB and the factor of 26.

use super::{Trace, gpu_names};
use crate::random::Dice;

const GPUS: usize = 8;
const SNAPSHOTS: usize = 776;
/// The end of the straight line.
const LINE: usize = 375;
/// Half the snapshots, at which the average passes its median.
const MEDIAN: usize = SNAPSHOTS / 2;
/// After it no checkpoint is below 80 MB.
const SETTLED: usize = 450;
/// The snapshot with the widest spread, and its smallest and largest size in MB.
const WIDEST: usize = 382;
const WIDEST_SIZES: (f64, f64) = (4.28, 111.28);

/// Averages from the median on: a share of those snapshots, and the average in MB below which they lie.
const UPPER: [(f64, f64); 7] = [
    (0.0, 80.0),
    (0.16, 90.0),
    (0.42, 98.0),
    (0.5, 128.0),
    (0.8, 132.0),
    (0.96, 160.0),
    (1.0, 170.0),
];

impl Trace {
    /// Makes 776 snapshots of 8 GPUs.
    pub fn rtm(seed: u64) -> Trace {
        let mut dice = Dice::new(seed);
        let averages = averages(&mut dice);
        let mut places = vec![0.0; GPUS];
        places.fill_with(|| dice.normal());
        let mut trace = Trace::of(gpu_names(GPUS));
        for (snapshot, &average) in averages.iter().enumerate() {
            // The order of the GPUs by size changes slowly, as the wave moves through their parts of the earth.
            for place in &mut places {
                *place = 0.97 * *place + 0.243 * dice.normal();
            }
            let (least, most) = extremes(&mut dice, snapshot, average);
            trace.snapshots.push(sizes(&places, least, average, most));
        }
        trace
    }
}

/// Returns the average of each snapshot, in MB.
fn averages(dice: &mut Dice) -> Vec<f64> {
    let line = (0..LINE).map(|at| 0.8 + 39.2 * at as f64 / LINE as f64 + 0.4 * dice.unit());
    let mut averages: Vec<f64> = line.collect();
    averages
        .extend((LINE..MEDIAN).map(|at| 40.0 + 40.0 * (at - LINE) as f64 / (MEDIAN - LINE) as f64));
    // The rise goes on a little, then the rest of the distribution comes in irregular order.
    let rising = SETTLED - MEDIAN;
    let upper = SNAPSHOTS - MEDIAN;
    averages.extend((0..rising).map(|rank| upper_quantile(rank as f64 / upper as f64)));
    let mut wander = 0.0;
    let mut order: Vec<(f64, usize)> = (rising..upper)
        .map(|at| {
            wander = 0.9 * wander + dice.normal();
            (wander, at)
        })
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rest = vec![0.0; upper - rising];
    for (rank, &(_, at)) in order.iter().enumerate() {
        rest[at - rising] = upper_quantile((rank + rising) as f64 / upper as f64);
    }
    averages.extend(rest);
    averages
}

fn upper_quantile(share: f64) -> f64 {
    let above = UPPER
        .iter()
        .position(|&(end, _)| share < end)
        .unwrap_or(UPPER.len() - 1)
        .max(1);
    let ((left, low), (right, high)) = (UPPER[above - 1], UPPER[above]);
    low + (high - low) * (share - left) / (right - left)
}

/// Returns the smallest and largest size of a snapshot, in MB.
fn extremes(dice: &mut Dice, snapshot: usize, average: f64) -> (f64, f64) {
    let (low, high) = (dice.between(0.3, 0.9), dice.between(0.4, 1.0));
    match snapshot {
        WIDEST => WIDEST_SIZES,
        0..350 => (
            average * (1.0 - 0.6 * low),
            (average * (1.0 + high)).min(79.0),
        ),
        350..SETTLED => {
            // Widest at its middle, and never wider than the widest.
            let near = 1.0 - (snapshot as f64 - WIDEST as f64).abs() / 70.0;
            let least = (average * (1.0 - 0.9 * near * low)).max(WIDEST_SIZES.0 * 1.05);
            let most = average * (1.0 + (0.3 + 0.7 * near) * high);
            (least, most.min(least + 105.0).min(25.0 * least))
        }
        _ => {
            let least = average - (average - 80.5) * low;
            (
                least,
                (average + (average - least) * (0.6 + high)).min(least + 106.0),
            )
        }
    }
}

/// Returns sizes in bytes with exactly this smallest and largest and, as near as possible, this average.
fn sizes(places: &[f64], least: f64, average: f64, most: f64) -> Vec<u64> {
    let (low, high) = places
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), &at| {
            (low.min(at), high.max(at))
        });
    let shares: Vec<f64> = places.iter().map(|at| (at - low) / (high - low)).collect();
    let mean = |power: f64| {
        shares.iter().map(|share| share.powf(power)).sum::<f64>() / shares.len() as f64
    };
    let wanted = (average - least) / (most - least);
    // The mean falls as the power grows, so bisection of the logarithm's interval finds it.
    let (mut small, mut large) = (-5.0f64, 5.0f64);
    for _ in 0..50 {
        let middle = (small + large) / 2.0;
        if mean(middle.exp()) > wanted {
            small = middle
        } else {
            large = middle
        }
    }
    let power = ((small + large) / 2.0).exp();
    let size = |share: &f64| ((least + (most - least) * share.powf(power)) * 1e6).round() as u64;
    shares.iter().map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_has_the_papers_statistics() {
        for seed in [1, 2, 3] {
            let trace = Trace::rtm(seed);
            let statistics = trace.statistics();
            assert_eq!((statistics.snapshots, statistics.processes), (776, 8));
            assert!(
                (52e9..55e9).contains(&statistics.bytes_per_process),
                "{statistics:?}"
            );
            for (found, wanted) in statistics
                .average_percentiles
                .into_iter()
                .zip([80e6, 128e6, 160e6])
            {
                assert!((found / wanted - 1.0).abs() < 0.03, "{statistics:?}");
            }
            assert_eq!(statistics.largest_difference, 107_000_000);
            assert!(
                (statistics.largest_ratio - 26.0).abs() < 0.1,
                "{statistics:?}"
            );
        }
    }

    #[test]
    fn with_80_mb_free_only_the_middle_has_senders_and_receivers() {
        for (at, sizes) in Trace::rtm(1).snapshots().iter().enumerate() {
            let (senders, receivers) = (
                sizes.iter().any(|&s| s > 80_000_000),
                sizes.iter().any(|&s| s < 80_000_000),
            );
            match at {
                0..350 => assert!(receivers && !senders, "{at}"),
                350..450 => {}
                _ => assert!(senders && !receivers, "{at}"),
            }
        }
    }

    #[test]
    fn the_average_grows_almost_linearly_to_snapshot_400() {
        let averages = Trace::rtm(1).averages();
        for at in 0..380 {
            assert!(averages[at + 10] > averages[at], "{at}");
        }
    }

    #[test]
    fn a_seed_means_the_same_trace_and_another_seed_another() {
        assert_eq!(Trace::rtm(7), Trace::rtm(7));
        assert_ne!(Trace::rtm(7), Trace::rtm(8));
    }
}
