//! The model's prediction for an image and the outcome: one record for each rank and epoch, whatever the number of regions.

use serde::{Deserialize, Serialize};

use super::Rates;
use crate::tracking::Tracking;

/// Prediction and outcome. Bytes are those of private memory, before compression.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The tracking in use; `null` if the image was not to build on an earlier one, and in manifests of earlier releases.
    #[serde(default)]
    pub tracking: Option<Tracking>,
    /// `null` if there was nothing to decide: the image was not to build on an earlier one.
    pub predicted: Option<Predicted>,
    /// The number of regions with anything to write, by method.
    pub regions: Taken,
    pub outcome: EpochMeasurement,
    /// GPU memory that was staged; `null` if there is none, and in manifests of earlier releases.
    #[serde(default)]
    pub devices: Option<OfDevices>,
}

/// Regions by method.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Taken {
    pub full: u64,
    pub page: u64,
    pub hash: u64,
    /// The part of `hash` that was hashed to measure alpha.
    pub looks: u64,
}

/// The model's prediction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Predicted {
    /// The rates measured in earlier epochs.
    pub rates: Rates,
    /// Alpha of the page-dirty bytes in all regions with a known alpha; `null` if no region has one.
    pub alpha: Option<f64>,
    /// Of the regions that were to be hashed, and of blocks whose hashes were known: what [`EpochMeasurement::alpha`] says afterwards.
    pub alpha_hashed: Option<f64>,
    pub full: Expected,
    /// The expectation by pages, or `null` if there was no earlier image to build on.
    pub page: Option<Expected>,
    /// The same, with all regions hashed.
    pub hash: Option<Expected>,
    /// The expectation with each region in its chosen way.
    pub taken: Expected,
}

/// The expected cost of a way to write an image.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Expected {
    pub seconds: f64,
    pub bytes: f64,
}

/// The outcome.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct EpochMeasurement {
    /// Bytes that the image had to hold or to find elsewhere.
    pub touched: u64,
    /// `null` if it was not tracked which pages had been written to.
    pub page_dirty: Option<u64>,
    pub hashed: u64,
    /// Bytes in hashed blocks that had changed or were new.
    pub hash_dirty: u64,
    /// Bytes given to the image's writer.
    pub written: u64,
    pub hash_seconds: f64,
    /// Seconds until all bytes were on disk.
    pub write_seconds: f64,
    /// Alpha of the regions that were hashed; `null` if there were no hashes to compare with.
    pub alpha: Option<f64>,
}

/// The measurement of GPUs' memory, no part of which is in [`EpochMeasurement`].
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct OfDevices {
    /// Bytes that the image had to hold or to find elsewhere.
    pub bytes: u64,
    /// Bytes hashed by the GPUs that hold them, and the seconds that this took.
    pub by_gpus: u64,
    pub gpu_seconds: f64,
    /// Bytes hashed by processors: in host memory before they came to the rank, or afterwards.
    pub by_processor: u64,
    pub processor_seconds: f64,
    /// Bytes that came to the rank.
    pub came: u64,
    /// Bytes given to the image's writer.
    pub written: u64,
}

impl Record {
    /// Tells whether every number is valid.
    pub fn is_sound(&self) -> bool {
        let EpochMeasurement {
            hash_seconds,
            write_seconds,
            alpha,
            ..
        } = self.outcome;
        let predicted = self.predicted.iter().flat_map(Predicted::numbers);
        let outcome = [Some(hash_seconds), Some(write_seconds), alpha];
        let devices = self.devices.iter();
        let devices = devices.flat_map(|of| [Some(of.gpu_seconds), Some(of.processor_seconds)]);
        predicted
            .chain(outcome)
            .chain(devices)
            .flatten()
            .all(|number| number.is_finite())
    }
}

impl Predicted {
    fn numbers(&self) -> Vec<Option<f64>> {
        let Rates {
            beta_ckpt,
            beta_hash,
        } = self.rates;
        let ways = [Some(self.full), self.page, self.hash, Some(self.taken)];
        let ways = ways.into_iter().flatten();
        let ways = ways.flat_map(|way| [Some(way.seconds), Some(way.bytes)]);
        let single = [
            Some(beta_ckpt),
            Some(beta_hash),
            self.alpha,
            self.alpha_hashed,
        ];
        ways.chain(single).collect()
    }
}

impl EpochMeasurement {
    /// Returns the seconds to hash and to write.
    pub fn seconds(&self) -> f64 {
        self.hash_seconds + self.write_seconds
    }
}

impl Expected {
    /// Adds another region.
    pub(super) fn add(&mut self, seconds: f64, bytes: f64) {
        self.seconds += seconds;
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_noticed_wherever_it_is() {
        let rates = Rates::new(1.0, 1.0).expect("rates");
        let some = Some(Expected::default());
        let predicted = Predicted {
            rates,
            alpha: None,
            alpha_hashed: Some(0.5),
            full: Expected::default(),
            page: some,
            hash: None,
            taken: Expected::default(),
        };
        let sound = Record {
            predicted: Some(predicted),
            ..Record::default()
        };
        assert!(sound.is_sound() && Record::default().is_sound());
        let wrong = |change: fn(&mut Predicted, &mut EpochMeasurement)| {
            let (mut predicted, mut outcome) = (predicted, EpochMeasurement::default());
            change(&mut predicted, &mut outcome);
            let predicted = Some(predicted);
            Record {
                predicted,
                outcome,
                ..sound
            }
        };
        for wrong in [
            OfDevices {
                gpu_seconds: f64::NAN,
                ..OfDevices::default()
            },
            OfDevices {
                processor_seconds: f64::INFINITY,
                ..OfDevices::default()
            },
        ] {
            let devices = Some(wrong);
            assert!(!Record { devices, ..sound }.is_sound(), "{wrong:?}");
        }
        let changes: [fn(&mut Predicted, &mut EpochMeasurement); 6] = [
            |predicted, _| predicted.rates.beta_hash = f64::NAN,
            |predicted, _| predicted.alpha = Some(f64::INFINITY),
            |predicted, _| predicted.taken.seconds = f64::NAN,
            |predicted, _| {
                predicted.page = Some(Expected {
                    seconds: 0.0,
                    bytes: f64::NAN,
                })
            },
            |_, outcome| outcome.write_seconds = f64::NAN,
            |_, outcome| outcome.alpha = Some(f64::NEG_INFINITY),
        ];
        for change in changes {
            let record = wrong(change);
            assert!(!record.is_sound(), "{record:?}");
        }
    }
}
