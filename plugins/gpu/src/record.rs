//! A record of the measured and predicted times of copies, by GPU, driver, way and epoch.
//!
//! The record is a file beside the epochs, [`NAME`]. Every epoch adds its copies, and the next epoch's model is fitted to all copies in the
//! record. Copies under another driver say nothing about this one, so they are kept apart. If a record cannot be read, a new one begins: no
//! checkpoint depends on it.

use crate::node::{Back, CopyRoute, Node};
use crate::streams::{Copies, UNMEASURED};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stillpoint_ids::Epoch;
use stillpoint_multilevel::interval::{FitError, Model, Sample, fit};

/// The record's name in a checkpoint directory.
pub const NAME: &str = "gpu-streams.json";

/// The size limit of a record, in bytes.
pub const LARGEST: u64 = 4 << 20;

/// The number of the newest epochs' copies that are kept for each way. Probes are kept besides, since they tell sizes and
/// streams apart.
pub const KEPT: usize = 48;

/// Bytes of a copy that is large enough to show a bandwidth.
const LARGE: u64 = 256 << 20;

/// The epoch of a probe.
pub const PROBE: Epoch = Epoch(0);

/// The way from host memory to a GPU. The way to host memory is `to_host`, inside the GPU `own`, and to a peer the
/// peer's uuid.
pub const FROM_HOST: &str = "from_host";
pub const TO_HOST: &str = "to_host";
pub const OWN: &str = "own";

/// Returns the record's name of a GPU: its uuid in hexadecimal.
pub fn named(uuid: &[u8; 16]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All recorded copies.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Record {
    pub gpus: Vec<OfGpu>,
}

/// The copies of one GPU under one version of the driver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfGpu {
    pub uuid: String,
    pub driver: String,
    /// Copies by way.
    pub copied: BTreeMap<String, Vec<Copied>>,
}

/// One way's copies in one epoch.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Copied {
    /// The epoch, or [`PROBE`] for a probe.
    pub epoch: Epoch,
    #[serde(flatten)]
    pub sample: Sample,
    /// The model's prediction in seconds; `null` if there was none.
    pub predicted: Option<f64>,
    /// Whether this was the way back to the program's memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
}

/// The copies of the newest epoch.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Newest {
    pub epoch: Epoch,
    /// From the program's memory to the staged place; `null` if this is not known.
    pub staged: Option<Leg>,
    /// Back to the program's memory; `null` also for a suspended job.
    pub back: Option<Leg>,
}

/// All ways of one direction together.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Leg {
    pub bytes: u64,
    /// The longest time of all ways.
    pub seconds: f64,
    /// The longest prediction of a model; `null` if there was none.
    pub predicted: Option<f64>,
}

/// The reason why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "{uuid}, {way}: number {number} has a size, time or number of streams that is not greater than zero"
    )]
    NotPositive {
        uuid: String,
        way: String,
        number: usize,
    },
}

impl Record {
    pub fn parse(bytes: &[u8]) -> Result<Record, RecordError> {
        let record: Record = serde_json::from_slice(bytes)?;
        for gpu in &record.gpus {
            for (way, copied) in &gpu.copied {
                if let Some(number) = copied.iter().position(|copied| !copied.is_sound()) {
                    return Err(RecordError::NotPositive {
                        uuid: gpu.uuid.clone(),
                        way: way.clone(),
                        number: number + 1,
                    });
                }
            }
        }
        Ok(record)
    }

    pub fn text(&self) -> Result<Vec<u8>, RecordError> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Adds a copy, and drops the oldest copies beyond the limit.
    pub fn add(&mut self, uuid: &str, driver: &str, way: &str, copied: Copied) {
        if !copied.is_sound() {
            return;
        }
        let known = self.position(uuid, driver);
        let at = known.unwrap_or_else(|| {
            self.gpus.push(OfGpu {
                uuid: uuid.to_owned(),
                driver: driver.to_owned(),
                copied: BTreeMap::new(),
            });
            self.gpus.len() - 1
        });
        let all = self.gpus[at].copied.entry(way.to_owned()).or_default();
        all.push(copied);
        let mut of_epochs = all.iter().filter(|copied| copied.epoch != PROBE).count();
        all.retain(|copied| {
            let keep = copied.epoch == PROBE || of_epochs <= KEPT;
            of_epochs -= usize::from(copied.epoch != PROBE);
            keep
        });
    }

    /// Returns a way's copies, the oldest first.
    pub fn copied(&self, uuid: &str, driver: &str, way: &str) -> &[Copied] {
        let gpu = self.position(uuid, driver).map(|at| &self.gpus[at]);
        gpu.and_then(|gpu| gpu.copied.get(way))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the model of a way, fitted to all its copies.
    pub fn model(&self, uuid: &str, driver: &str, way: &str) -> Result<Model, FitError> {
        fitted(self.copied(uuid, driver, way))
    }

    /// Chooses how to copy that many bytes by a way, and predicts the time, if enough is known.
    pub fn choose(&self, uuid: &str, driver: &str, way: &str, bytes: u64) -> (Copies, Option<f64>) {
        self.choose_in(uuid, driver, way, bytes, u64::MAX)
    }

    /// Chooses the same with slots that fit into that many bytes of host memory.
    pub fn choose_in(
        &self,
        uuid: &str,
        driver: &str,
        way: &str,
        bytes: u64,
        room: u64,
    ) -> (Copies, Option<f64>) {
        match self.model(uuid, driver, way) {
            Ok(model) => {
                let copies = Copies::fastest_in(&model, bytes, room);
                (copies, Some(copies.seconds(&model, bytes)))
            }
            Err(_) => (UNMEASURED.within(room), None),
        }
    }

    /// Returns a way's bandwidth in bytes a second for large copies, by the model.
    pub fn bandwidth(&self, uuid: &str, driver: &str, way: &str) -> Option<u64> {
        let (_, seconds) = self.choose(uuid, driver, way, LARGE);
        let rate = LARGE as f64 / seconds.filter(|seconds| *seconds > 0.0)?;
        Some((rate as u64).max(1))
    }

    /// Returns the bandwidth from host memory to the fastest GPU, with large copies.
    pub fn from_host(&self) -> Option<u64> {
        let rate = |gpu: &OfGpu| self.bandwidth(&gpu.uuid, &gpu.driver, FROM_HOST);
        self.gpus.iter().filter_map(rate).max()
    }

    /// Returns a function that chooses how to copy so many bytes by a way of a node, and predicts the time.
    pub fn choice<'a>(
        &'a self,
        node: &'a Node,
        driver: &'a str,
    ) -> impl Fn(CopyRoute, u64) -> (Copies, Option<f64>) + 'a {
        move |way, bytes| {
            let uuid = &node.gpus[way.from].uuid;
            self.choose(uuid, driver, node.way_name(way), bytes)
        }
    }

    /// Returns a function that chooses how so many bytes, in copies of a given size, come back by a way, and predicts
    /// the time.
    pub fn way_back<'a>(
        &'a self,
        node: &'a Node,
        driver: &'a str,
    ) -> impl Fn(Back, u64, u64) -> (Copies, Option<f64>) + 'a {
        move |back, bytes, slot| {
            let (uuid, name) = node.back_name(back);
            match self.model(uuid, driver, name) {
                Ok(model) => {
                    let copies = Copies::fastest_of(&model, bytes, slot);
                    (copies, Some(copies.seconds(&model, bytes)))
                }
                Err(_) => {
                    let streams = UNMEASURED.streams;
                    (Copies { streams, slot }, None)
                }
            }
        }
    }

    /// Replaces all GPUs except `mine` with those of another record, since several nodes write to one record.
    pub fn take_others(&mut self, mine: &[String], from: Record) {
        self.gpus.retain(|gpu| mine.contains(&gpu.uuid));
        let others = from.gpus.into_iter();
        self.gpus
            .extend(others.filter(|gpu| !mine.contains(&gpu.uuid)));
    }

    /// Returns the newest epoch with any copies.
    pub fn newest(&self) -> Option<Newest> {
        let all = || {
            let gpus = self.gpus.iter().flat_map(|gpu| gpu.copied.values());
            gpus.flatten().filter(|copied| copied.epoch != PROBE)
        };
        let epoch = all().map(|copied| copied.epoch).max()?;
        let leg = |back: bool| {
            let of = || all().filter(move |copied| (copied.epoch, copied.back) == (epoch, back));
            of().next()?;
            let longest = |of: &mut dyn Iterator<Item = f64>| of.fold(0.0, f64::max);
            Some(Leg {
                bytes: of().map(|copied| copied.sample.size as u64).sum(),
                seconds: longest(&mut of().map(|copied| copied.sample.seconds)),
                predicted: of()
                    .map(|copied| copied.predicted)
                    .collect::<Option<Vec<f64>>>()
                    .map(|all| longest(&mut all.into_iter())),
            })
        };
        Some(Newest {
            epoch,
            staged: leg(false),
            back: leg(true),
        })
    }

    fn position(&self, uuid: &str, driver: &str) -> Option<usize> {
        let this = |gpu: &OfGpu| gpu.uuid == uuid && gpu.driver == driver;
        self.gpus.iter().position(this)
    }
}

/// Fits the model of copies.
pub fn fitted(copied: &[Copied]) -> Result<Model, FitError> {
    let samples: Vec<Sample> = copied.iter().map(|copied| copied.sample).collect();
    fit(&samples)
}

impl Copied {
    /// Tells whether the numbers are possible for a copy.
    fn is_sound(&self) -> bool {
        let positive = |number: f64| number > 0.0 && number.is_finite();
        let Sample {
            size,
            streams,
            seconds,
            slot,
        } = self.sample;
        let predicted = self
            .predicted
            .is_none_or(|said| said >= 0.0 && said.is_finite());
        positive(size) && positive(seconds) && streams > 0 && slot.is_none_or(positive) && predicted
    }
}

#[cfg(test)]
mod tests;
