//! The epochs of a checkpoint directory: the model's prediction for each, and the result.

mod offer;
mod together;

use std::path::Path;
use stillpoint_ids::Epoch;

use serde::Serialize;
use stillpoint_directory::RequiredOwner;
use stillpoint_image::Manifest;
use stillpoint_incremental::viability::{
    EpochMeasurement, Estimate, Expected, Hasher, Load, OfDevices, Rates, Record, Taken,
};
use stillpoint_multilevel::units::{show_bandwidth, show_seconds};

use super::{bytes, percent};
use crate::Failure;
use crate::verify::find;
use offer::Offer;
use stillpoint_coordinator::epoch::Epochs;
use together::together;

/// The output of `plan incremental DIR --json`.
#[derive(Serialize)]
pub struct Recorded {
    pub epochs: Vec<RecordedEpoch>,
    /// Rates of one process in bytes per second, over all these epochs.
    pub measured: Measured,
    /// The model with these rates. Its memory is that of a process of the newest epoch with known page-dirty memory, and its alpha is the last known one.
    /// `null` if one of these is not known.
    pub model: Option<Estimate>,
    /// The offer of a GPU to hash memory of the ranks themselves; `null` if the epochs have not measured it.
    pub gpu: Option<Offer>,
}

/// The possible hashers, with their rates in bytes per second.
pub type Hashers = Vec<(Hasher, f64)>;

/// Rates of writing and hashing, if there was any.
#[derive(Clone, Copy, Serialize)]
pub struct Measured {
    pub beta_ckpt: Option<f64>,
    pub beta_hash: Option<f64>,
}

/// All ranks of an epoch together. Bytes are sums, seconds are those of the slowest rank, alphas are averages by page-dirty or hashed bytes.
#[derive(Serialize)]
pub struct RecordedEpoch {
    pub epoch: Epoch,
    pub ranks: usize,
    /// `null`: the manifest does not contain it.
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
        let all = Epochs::at(directory, RequiredOwner::Anyones).map_err(|error| failed(&error))?;
        let mut epochs = Vec::new();
        for epoch in all.committed().map_err(|error| failed(&error))? {
            let manifest = Manifest::read(&all.path(epoch)).map_err(|error| failed(&error))?;
            epochs.push(RecordedEpoch::of(&manifest));
        }
        let measured = measured(&epochs);
        let model = model(&epochs, measured);
        let gpu = Offer::measured(directory, &epochs);
        Ok(Recorded {
            epochs,
            measured,
            model,
            gpu,
        })
    }

    /// A point for each epoch that has one: the ratio of the rates of its prediction, and the resulting alpha.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let recorded = self.epochs.iter().filter_map(|epoch| epoch.recorded);
        let points = recorded.filter_map(|record| {
            let ratio = record.predicted?.rates.ratio();
            Some((ratio, record.outcome.alpha?))
        });
        points.collect()
    }

    pub fn in_words(&self) -> String {
        let epochs = self.epochs.iter().map(RecordedEpoch::in_words);
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
        let gpu = self.gpu.as_ref().map_or_else(String::new, Offer::in_words);
        epochs.collect::<String>() + &measured + &gpu
    }

    /// The model with the hasher that it chooses: the processor, a GPU, or none.
    pub fn chosen(&self) -> Option<(Estimate, Hashers, Option<Hasher>)> {
        let model = self.model.as_ref()?;
        let processor = (Hasher::Processor, model.rates.beta_hash);
        let gpu = self.gpu.map(|offer| (Hasher::Gpu, offer.beta_gpu));
        let hashers: Hashers = [Some(processor), gpu].into_iter().flatten().collect();
        let load = Load {
            memory: model.memory,
            page_dirty: model.c,
            t_dirty: 0.0,
        };
        let changed = (1.0 - model.alpha).clamp(0.0, 1.0);
        let found = Estimate::with_fastest(model.rates.beta_ckpt, &hashers, load, changed);
        let (estimate, hasher) = found.ok()?;
        Some((estimate, hashers, hasher))
    }
}

fn measured(epochs: &[RecordedEpoch]) -> Measured {
    let sum = |of: fn(&Times) -> f64| epochs.iter().map(|epoch| of(&epoch.times)).sum::<f64>();
    let rate = |bytes: f64, seconds: f64| (bytes > 0.0 && seconds > 0.0).then(|| bytes / seconds);
    Measured {
        beta_ckpt: rate(sum(|times| times.written), sum(|times| times.writing)),
        beta_hash: rate(sum(|times| times.hashed), sum(|times| times.hashing)),
    }
}

fn model(epochs: &[RecordedEpoch], measured: Measured) -> Option<Estimate> {
    let newest = || epochs.iter().rev().filter(|epoch| epoch.recorded.is_some());
    let outcome = |epoch: &RecordedEpoch| epoch.recorded.map(|record| record.outcome);
    let (touched, page_dirty) = newest().find_map(|epoch| {
        let outcome = outcome(epoch)?;
        let ranks = epoch.ranks.max(1) as u64;
        Some((outcome.touched / ranks, outcome.page_dirty? / ranks))
    })?;
    // The alpha of an outcome is that of the hashed regions only; the alpha of a prediction is that of all.
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
    // Blocks are smaller than pages here, so not more bytes are written than are page-dirty.
    Estimate::of(rates, load, (1.0 - alpha).clamp(0.0, 1.0)).ok()
}

impl RecordedEpoch {
    fn of(manifest: &Manifest) -> RecordedEpoch {
        let records = manifest.ranks.iter().map(|rank| rank.increment);
        // If one rank has no record, the sums mean nothing.
        let records: Vec<Record> = records.collect::<Option<_>>().unwrap_or_default();
        let sum = |of: fn(&EpochMeasurement) -> f64| {
            records.iter().map(|record| of(&record.outcome)).sum()
        };
        RecordedEpoch {
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
            devices,
        }) = &self.recorded
        else {
            return head + "its manifest has no data for the model\n";
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
        text += &row("outcome", came, outcome.alpha);
        text + &devices.as_ref().map_or(String::new(), of_devices)
    }
}

/// The result for memory of GPUs, with its hashers.
fn of_devices(of: &OfDevices) -> String {
    let by = |who: &str, hashed: u64, seconds: f64| {
        let rate = Rates::new(1.0, hashed as f64 / seconds).ok()?;
        let rate = show_bandwidth(rate.beta_hash as u64);
        Some(format!("{} by {who} at {rate}", bytes(hashed as f64)))
    };
    let hashed = [
        by("GPUs", of.by_gpus, of.gpu_seconds),
        by("processors", of.by_processor, of.processor_seconds),
    ];
    let hashed: Vec<String> = hashed.into_iter().flatten().collect();
    let hashed = match hashed.is_empty() {
        true => "not hashed".to_owned(),
        false => format!("hashed: {}", hashed.join(", ")),
    };
    format!(
        "GPUs: {}; {hashed}; {} came to the ranks, {} written\n",
        bytes(of.bytes as f64),
        bytes(of.came as f64),
        bytes(of.written as f64)
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that writes at 1 GB/s and hashes at 5. A share `alpha` of its page-dirty bytes comes back to its earlier contents.
    fn recorded(gpu: Option<Offer>, alpha: f64) -> Recorded {
        let rates = Rates::new(1e9, 5e9).expect("rates");
        let load = Load {
            memory: 8e9,
            page_dirty: 4e9,
            t_dirty: 0.0,
        };
        Recorded {
            epochs: Vec::new(),
            measured: Measured {
                beta_ckpt: Some(1e9),
                beta_hash: Some(5e9),
            },
            model: Estimate::of(rates, load, 1.0 - alpha).ok(),
            gpu,
        }
    }

    #[test]
    fn the_model_chooses_who_hashes_by_what_was_measured() {
        let hasher = |gpu, alpha| recorded(gpu, alpha).chosen().expect("a model").2;
        // Memory comes over a bus to a kernel that is as fast as a busy processor: the GPU never comes before the processor.
        let slow = Offer::of(12e9, 0.88e9);
        assert_eq!(hasher(slow, 0.5), Some(Hasher::Processor));
        assert_eq!(hasher(None, 0.5), Some(Hasher::Processor));
        // This GPU reads the host's memory as if it were its own.
        let fast = Offer::of(400e9, 900e9);
        assert_eq!(hasher(fast, 0.5), Some(Hasher::Gpu));
        // If next to no bytes come back, hashing does not pay, except on a GPU that is fast enough.
        assert_eq!(hasher(slow, 0.05), None);
        assert_eq!(hasher(fast, 0.05), Some(Hasher::Gpu));
        assert_eq!(hasher(fast, 0.0), None);
        let offer = fast.expect("rates");
        assert!((offer.beta_gpu - 277e9).abs() < 1e9, "{offer:?}");
        assert_eq!(Offer::of(1.0, f64::NAN), None);
    }
}
