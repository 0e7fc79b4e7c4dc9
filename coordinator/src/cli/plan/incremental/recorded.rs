//! What the epochs of a checkpoint directory say: what the model expected of each, and what came of it.

use std::path::Path;

use serde::Serialize;
use stillpoint_directory::Whose;
use stillpoint_image::Manifest;
use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{
    Estimate, Expected, Load, Outcome, Predicted, Rates, Record, Taken,
};
use stillpoint_multilevel::units::{show_bandwidth, show_seconds};

use super::{bytes, percent};
use crate::cli::Failure;
use crate::cli::verify::find;
use crate::epoch::Epochs;

/// What `plan incremental DIR --json` prints.
#[derive(Serialize)]
pub struct Recorded {
    pub epochs: Vec<Epoch>,
    /// Bytes a second of one process, over all these epochs.
    pub measured: Measured,
    /// The model with these rates, for a process such as those of the newest epoch that says what was written to, and the alpha that was
    /// known last. `null` where one of these is not known.
    pub model: Option<Estimate>,
}

/// Rates, as far as anything was written and hashed.
#[derive(Clone, Copy, Serialize)]
pub struct Measured {
    pub beta_ckpt: Option<f64>,
    pub beta_hash: Option<f64>,
}

/// All ranks of an epoch together: bytes are sums, seconds those of the slowest rank, alphas averages by page-dirty or hashed bytes.
#[derive(Serialize)]
pub struct Epoch {
    pub epoch: u64,
    pub ranks: usize,
    /// `null`: the manifest does not say.
    pub recorded: Option<Record>,
    #[serde(skip)]
    times: Times,
}

/// Sums over the ranks of an epoch.
#[derive(Clone, Copy, Default)]
struct Times {
    written: f64,
    writing: f64,
    hashed: f64,
    hashing: f64,
}

impl Recorded {
    /// Reads all manifests of a directory.
    pub fn read(directory: &Path) -> Result<Recorded, Failure> {
        find(directory, None)?;
        let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
        let all = Epochs::at(directory, Whose::Anyones).map_err(|error| failed(&error))?;
        let mut epochs = Vec::new();
        for epoch in all.committed().map_err(|error| failed(&error))? {
            let manifest = Manifest::read(&all.path(epoch)).map_err(|error| failed(&error))?;
            epochs.push(Epoch::of(&manifest));
        }
        let measured = measured(&epochs);
        let model = model(&epochs, measured);
        Ok(Recorded {
            epochs,
            measured,
            model,
        })
    }

    /// Of each epoch that has them: the ratio of the rates that it took for its prediction, and the alpha that came of it.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let recorded = self.epochs.iter().filter_map(|epoch| epoch.recorded);
        let points = recorded.filter_map(|record| {
            let ratio = record.predicted?.rates.ratio();
            Some((ratio, record.outcome.alpha?))
        });
        points.collect()
    }

    pub fn in_words(&self) -> String {
        let epochs = self.epochs.iter().map(Epoch::in_words);
        let rate = |rate: Option<f64>| {
            rate.map_or("an unknown rate".to_owned(), |rate| {
                show_bandwidth(rate as u64)
            })
        };
        let Measured {
            beta_ckpt,
            beta_hash,
        } = self.measured;
        let measured = format!(
            "measured: one process writes at {} and hashes at {}\n",
            rate(beta_ckpt),
            rate(beta_hash)
        );
        epochs.collect::<String>() + &measured
    }
}

fn measured(epochs: &[Epoch]) -> Measured {
    let sum = |of: fn(&Times) -> f64| epochs.iter().map(|epoch| of(&epoch.times)).sum::<f64>();
    let rate = |bytes: f64, seconds: f64| (bytes > 0.0 && seconds > 0.0).then(|| bytes / seconds);
    Measured {
        beta_ckpt: rate(sum(|times| times.written), sum(|times| times.writing)),
        beta_hash: rate(sum(|times| times.hashed), sum(|times| times.hashing)),
    }
}

fn model(epochs: &[Epoch], measured: Measured) -> Option<Estimate> {
    let newest = || epochs.iter().rev().filter(|epoch| epoch.recorded.is_some());
    let outcome = |epoch: &Epoch| epoch.recorded.map(|record| record.outcome);
    let (touched, page_dirty) = newest().find_map(|epoch| {
        let outcome = outcome(epoch)?;
        let ranks = epoch.ranks.max(1) as u64;
        Some((outcome.touched / ranks, outcome.page_dirty? / ranks))
    })?;
    // What came of an epoch is of its hashed regions alone, what was expected of all.
    let alpha = newest().find_map(|epoch| {
        let expected = epoch.recorded?.predicted.and_then(|one| one.alpha);
        expected.or(outcome(epoch)?.alpha)
    })?;
    let rates = Rates::new(measured.beta_ckpt?, measured.beta_hash?).ok()?;
    let load = Load {
        memory: touched as f64,
        page_dirty: page_dirty as f64,
        t_dirty: 0.0,
    };
    // Blocks are smaller than pages here, so no more is written than is page-dirty.
    Estimate::of(rates, load, (1.0 - alpha).clamp(0.0, 1.0)).ok()
}

impl Epoch {
    fn of(manifest: &Manifest) -> Epoch {
        let records = manifest.ranks.iter().map(|rank| rank.increment);
        // One rank that does not say makes the sums mean nothing.
        let records: Vec<Record> = records.collect::<Option<_>>().unwrap_or_default();
        let sum = |of: fn(&Outcome) -> f64| records.iter().map(|record| of(&record.outcome)).sum();
        Epoch {
            epoch: manifest.epoch,
            ranks: manifest.ranks.len(),
            times: Times {
                written: sum(|outcome| outcome.written as f64),
                writing: sum(|outcome| outcome.write_seconds),
                hashed: sum(|outcome| outcome.hashed as f64),
                hashing: sum(|outcome| outcome.hash_seconds),
            },
            recorded: (!records.is_empty()).then(|| together(&records)),
        }
    }

    fn in_words(&self) -> String {
        let head = format!("epoch {}, {} ranks: ", self.epoch, self.ranks);
        let Some(Record {
            predicted,
            regions,
            outcome,
            tracking: _,
        }) = &self.recorded
        else {
            return head + "its manifest says nothing of the model\n";
        };
        let page_dirty = outcome
            .page_dirty
            .map_or("an unknown part".to_owned(), |c| bytes(c as f64));
        let mut text = head
            + &format!(
                "{} touched, {page_dirty} of it page-dirty",
                bytes(outcome.touched as f64)
            );
        if predicted.is_some() {
            let Taken {
                full,
                page,
                hash,
                looks,
            } = regions;
            text += &format!(
                "; regions: {full} full, {page} page-based, {hash} hash-based, {looks} of these to find out"
            );
        }
        text += &format!(
            "\n{:<12} {:>10} {:>10} {:>8}\n",
            "", "SECONDS", "WRITTEN", "ALPHA"
        );
        if let Some(predicted) = predicted {
            let rows = [
                ("full", Some(predicted.full), None),
                ("page-based", predicted.page, None),
                ("hash-based", predicted.hash, predicted.alpha),
                ("expected", Some(predicted.taken), predicted.alpha_hashed),
            ];
            for (name, way, alpha) in rows {
                text += &way.map_or(String::new(), |way| row(name, way, alpha));
            }
        }
        let came = Expected {
            seconds: outcome.seconds(),
            bytes: outcome.written as f64,
        };
        text + &row("outcome", came, outcome.alpha)
    }
}

fn row(name: &str, way: Expected, alpha: Option<f64>) -> String {
    let alpha = alpha.map_or(String::new(), percent);
    let text = format!(
        "{name:<12} {:>10} {:>10} {alpha:>8}",
        show_seconds(way.seconds),
        bytes(way.bytes)
    );
    text.trim_end().to_owned() + "\n"
}

/// An average, in which each value weighs as much as is said; `None` where there is none.
fn average(values: impl Iterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let known = values.filter_map(|(value, weight)| Some((value? * weight, weight)));
    let (sum, weights) = known.fold((0.0, 0.0), |(sum, all), (value, weight)| {
        (sum + value, all + weight)
    });
    (weights > 0.0).then(|| sum / weights)
}

fn together(records: &[Record]) -> Record {
    let outcomes = || records.iter().map(|record| record.outcome);
    let sum = |of: fn(&Outcome) -> u64| outcomes().map(|outcome| of(&outcome)).sum::<u64>();
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
        outcome: Outcome {
            touched: sum(|outcome| outcome.touched),
            page_dirty: dirty.map(|dirty| dirty.iter().sum()),
            hashed: sum(|outcome| outcome.hashed),
            hash_dirty: sum(|outcome| outcome.hash_dirty),
            written: sum(|outcome| outcome.written),
            alpha: average(outcomes().map(|outcome| (outcome.alpha, outcome.hashed as f64))),
            ..slowest
        },
    }
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
    // Before they have run for a while, some may have an image to build on, and others not.
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
