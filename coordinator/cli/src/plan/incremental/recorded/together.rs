//! Combines the records of all ranks of an epoch into one.

use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{
    EpochMeasurement, Expected, OfDevices, Predicted, Rates, Record, Taken,
};

/// An average with a weight for each value. Returns `None` if there are no values.
fn average(values: impl Iterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let known = values.filter_map(|(value, weight)| Some((value? * weight, weight)));
    let (sum, weights) = known.fold((0.0, 0.0), |(sum, all), (value, weight)| {
        (sum + value, all + weight)
    });
    (weights > 0.0).then(|| sum / weights)
}

/// Combines records: bytes are sums, seconds are those of the slowest rank, alphas are averages by page-dirty or hashed bytes.
pub fn together(records: &[Record]) -> Record {
    let outcomes = || records.iter().map(|record| record.outcome);
    let sum =
        |of: fn(&EpochMeasurement) -> u64| outcomes().map(|outcome| of(&outcome)).sum::<u64>();
    let slowest = outcomes().max_by(|one, two| one.seconds().total_cmp(&two.seconds()));
    let slowest = slowest.unwrap_or_default();
    let regions = |of: fn(&Taken) -> u64| records.iter().map(|record| of(&record.regions)).sum();
    let dirty: Option<Vec<u64>> = outcomes().map(|outcome| outcome.page_dirty).collect();
    let tracking = records.first().and_then(|record| record.tracking);
    let is_everywhere = |tracking: &Tracking| {
        let mut others = records.iter().map(|record| record.tracking);
        others.all(|other| other == Some(*tracking))
    };
    Record {
        tracking: tracking.filter(is_everywhere),
        predicted: predicted(records),
        regions: Taken {
            full: regions(|taken| taken.full),
            page: regions(|taken| taken.page),
            hash: regions(|taken| taken.hash),
            looks: regions(|taken| taken.looks),
        },
        outcome: EpochMeasurement {
            touched: sum(|outcome| outcome.touched),
            page_dirty: dirty.map(|dirty| dirty.iter().sum()),
            hashed: sum(|outcome| outcome.hashed),
            hash_dirty: sum(|outcome| outcome.hash_dirty),
            written: sum(|outcome| outcome.written),
            alpha: average(outcomes().map(|outcome| (outcome.alpha, outcome.hashed as f64))),
            ..slowest
        },
        devices: devices(records),
    }
}

/// Adds up the records. Seconds are added too, since ranks share GPUs and processors.
fn devices(records: &[Record]) -> Option<OfDevices> {
    let all = records.iter().filter_map(|record| record.devices);
    all.reduce(|one, other| OfDevices {
        bytes: one.bytes + other.bytes,
        by_gpus: one.by_gpus + other.by_gpus,
        gpu_seconds: one.gpu_seconds + other.gpu_seconds,
        by_processor: one.by_processor + other.by_processor,
        processor_seconds: one.processor_seconds + other.processor_seconds,
        came: one.came + other.came,
        written: one.written + other.written,
    })
}

fn predicted(records: &[Record]) -> Option<Predicted> {
    let all: Vec<Predicted> = records
        .iter()
        .map(|record| record.predicted)
        .collect::<Option<_>>()?;
    let first = all.first()?;
    let mean = |of: fn(&Rates) -> f64| {
        all.iter().map(|one| of(&one.rates)).sum::<f64>() / all.len() as f64
    };
    // In a job's first epochs, some ranks may have an image to build on, and others not.
    let way = |of: fn(&Predicted) -> Option<Expected>| -> Option<Expected> {
        let ways: Vec<Expected> = all.iter().map(of).collect::<Option<_>>()?;
        Some(Expected {
            seconds: ways.iter().map(|way| way.seconds).fold(0.0, f64::max),
            bytes: ways.iter().map(|way| way.bytes).sum(),
        })
    };
    let alpha = |of: fn(&Predicted) -> Option<f64>| {
        let weigh = |one: &Predicted| (of(one), one.page.map_or(0.0, |page| page.bytes));
        average(all.iter().map(weigh))
    };
    Some(Predicted {
        rates: Rates {
            beta_ckpt: mean(|rates| rates.beta_ckpt),
            beta_hash: mean(|rates| rates.beta_hash),
        },
        alpha: alpha(|one| one.alpha),
        alpha_hashed: alpha(|one| one.alpha_hashed),
        full: way(|one| Some(one.full)).unwrap_or(first.full),
        page: way(|one| one.page),
        hash: way(|one| one.hash),
        taken: way(|one| Some(one.taken)).unwrap_or(first.taken),
    })
}
