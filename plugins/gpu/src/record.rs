//! How long copies took beside what had been expected: GPU by GPU, driver by driver, way by way, epoch by epoch.
//!
//! The record is a file beside the epochs, [`NAME`]. Every epoch adds what it has copied, and the next one's model is fitted to all that is
//! kept. Another driver's copies say nothing about this one's, so they are kept apart. A record that cannot be read is begun anew: no
//! checkpoint depends on it.

use crate::node::{Back, Node, Way};
use crate::streams::{Copies, UNMEASURED};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stillpoint_multilevel::interval::{FitError, Model, Sample, fit};

/// The record's name in a checkpoint directory.
pub const NAME: &str = "gpu-streams.json";

/// A record is never longer than this: bytes.
pub const LARGEST: u64 = 4 << 20;

/// Copies of epochs that are kept for each way: the newest. Probes are kept besides, since they tell sizes and streams apart.
pub const KEPT: usize = 48;

/// Copies of that many bytes tell a bandwidth.
const LARGE: u64 = 256 << 20;

/// The epoch of a probe.
pub const PROBE: u64 = 0;

/// From host memory back to a GPU; to it is `to_host`, inside it `own`, and to a peer the peer's uuid.
pub const FROM_HOST: &str = "from_host";
pub const TO_HOST: &str = "to_host";
pub const OWN: &str = "own";

/// What the record calls a GPU: its identity, as the driver says it.
pub fn named(uuid: &[u8; 16]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All copies that are kept.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Record {
    pub gpus: Vec<OfGpu>,
}

/// The copies of one GPU under one version of the driver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfGpu {
    pub uuid: String,
    pub driver: String,
    /// By way.
    pub copied: BTreeMap<String, Vec<Copied>>,
}

/// One way's copies in one epoch.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Copied {
    /// [`PROBE`] where it was no epoch's.
    pub epoch: u64,
    #[serde(flatten)]
    pub sample: Sample,
    /// What the model had said, in seconds; `null` where there was none.
    pub predicted: Option<f64>,
    /// Whether it was the way back to the program's memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
}

/// What the newest epoch has copied.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Newest {
    pub epoch: u64,
    /// From the program's memory to where it was staged; `null` where nothing is known of that.
    pub staged: Option<Leg>,
    /// Back to the program's memory; `null` of a suspend, too.
    pub back: Option<Leg>,
}

/// All ways together.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Leg {
    pub bytes: u64,
    /// The longest of all ways.
    pub seconds: f64,
    /// The longest that a model had said; `null` where one had said nothing.
    pub predicted: Option<f64>,
}

/// Why a record cannot be read.
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

    /// Adds a copy, and forgets the oldest of what is too much.
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

    /// A way's copies, the oldest first.
    pub fn copied(&self, uuid: &str, driver: &str, way: &str) -> &[Copied] {
        let gpu = self.position(uuid, driver).map(|at| &self.gpus[at]);
        gpu.and_then(|gpu| gpu.copied.get(way))
            .map_or(&[], Vec::as_slice)
    }

    /// The model of a way, fitted to all its copies.
    pub fn model(&self, uuid: &str, driver: &str, way: &str) -> Result<Model, FitError> {
        fitted(self.copied(uuid, driver, way))
    }

    /// How to copy that many bytes by a way, and how long that takes; without a time where too little is known.
    pub fn choose(&self, uuid: &str, driver: &str, way: &str, bytes: u64) -> (Copies, Option<f64>) {
        self.choose_in(uuid, driver, way, bytes, u64::MAX)
    }

    /// The same, through slots that have room in that many bytes of host memory.
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

    /// Bytes a second that a way takes with large copies, as the model has them.
    pub fn bandwidth(&self, uuid: &str, driver: &str, way: &str) -> Option<u64> {
        let (_, seconds) = self.choose(uuid, driver, way, LARGE);
        let rate = LARGE as f64 / seconds.filter(|seconds| *seconds > 0.0)?;
        Some((rate as u64).max(1))
    }

    /// Bytes a second that the fastest GPU takes from host memory, with large copies.
    pub fn from_host(&self) -> Option<u64> {
        let rate = |gpu: &OfGpu| self.bandwidth(&gpu.uuid, &gpu.driver, FROM_HOST);
        self.gpus.iter().filter_map(rate).max()
    }

    /// How to copy so many bytes by a way of a node, and how long that takes.
    pub fn choice<'a>(
        &'a self,
        node: &'a Node,
        driver: &'a str,
    ) -> impl Fn(Way, u64) -> (Copies, Option<f64>) + 'a {
        move |way, bytes| {
            let uuid = &node.gpus[way.from].uuid;
            self.choose(uuid, driver, node.way_name(way), bytes)
        }
    }

    /// How so many bytes come back by a way, which lie in copies of that size, and how long that takes.
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

    /// What is known of all GPUs but these is taken from another record: several nodes write to one.
    pub fn take_others(&mut self, mine: &[String], from: Record) {
        self.gpus.retain(|gpu| mine.contains(&gpu.uuid));
        let others = from.gpus.into_iter();
        self.gpus
            .extend(others.filter(|gpu| !mine.contains(&gpu.uuid)));
    }

    /// The newest epoch that anything was copied in, if any was.
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

/// The model of copies.
pub fn fitted(copied: &[Copied]) -> Result<Model, FitError> {
    let samples: Vec<Sample> = copied.iter().map(|copied| copied.sample).collect();
    fit(&samples)
}

impl Copied {
    /// Whether its numbers are ones that a copy can have.
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
mod tests {
    use super::*;
    use crate::streams::probes;

    fn copied(epoch: u64, size: u64, copies: Copies, seconds: f64) -> Copied {
        Copied {
            epoch,
            sample: Sample {
                size: size as f64,
                streams: copies.streams,
                seconds,
                slot: Some(copies.slot as f64),
            },
            predicted: None,
            back: false,
        }
    }

    /// A bus of a bandwidth, which two streams fill.
    fn seconds(size: u64, copies: Copies, bandwidth: f64) -> f64 {
        let model = Model {
            fixed: 30e-6,
            per_stream: 4e-6,
            per_copy: 9e-6,
            visible: 1.0 / bandwidth,
            hidden: 0.2 / bandwidth,
        };
        copies.seconds(&model, size)
    }

    #[test]
    fn epochs_refit_the_model_and_what_is_old_is_forgotten() {
        let mut record = Record::default();
        let choose = |record: &Record| record.choose("GPU-1", "550.1", TO_HOST, 1 << 30);
        assert_eq!(choose(&record), (UNMEASURED, None));
        for (size, copies) in probes() {
            let probe = copied(PROBE, size, copies, seconds(size, copies, 12e9));
            record.add("GPU-1", "550.1", TO_HOST, probe);
        }
        let (copies, first) = choose(&record);
        let first = first.expect("a dozen probes");
        assert!((first / seconds(1 << 30, copies, 12e9) - 1.0).abs() < 1e-6);
        // The bus is shared from now on: half as fast.
        for epoch in 1..=200 {
            let copied = copied(epoch, 1 << 30, copies, seconds(1 << 30, copies, 6e9));
            record.add("GPU-1", "550.1", TO_HOST, copied);
        }
        let second = choose(&record).1.expect("fitted");
        assert!(second > 1.6 * first, "{second} after {first}");
        let kept = record.copied("GPU-1", "550.1", TO_HOST);
        assert_eq!(kept.len(), 12 + KEPT);
        assert_eq!(kept[12].epoch, 201 - KEPT as u64);
        // Another driver, another GPU, another way: nothing is known.
        for (uuid, driver, way) in [
            ("GPU-1", "560.0", TO_HOST),
            ("GPU-2", "550.1", TO_HOST),
            ("GPU-1", "550.1", OWN),
        ] {
            assert_eq!(
                record.choose(uuid, driver, way, 1 << 30),
                (UNMEASURED, None)
            );
        }
        let rate = record.bandwidth("GPU-1", "550.1", TO_HOST).expect("fitted");
        assert!((6_000_000_000..12_000_000_000).contains(&rate), "{rate}");
        assert_eq!(record.bandwidth("GPU-1", "550.1", OWN), None);
        assert!((record.text().expect("text").len() as u64) < LARGEST / 16);
    }

    #[test]
    fn the_newest_epoch_is_told_by_its_longest_way() {
        let mut record = Record::default();
        assert_eq!(record.newest(), None);
        record.add("GPU-1", "1", OWN, copied(PROBE, 9, UNMEASURED, 9.0));
        assert_eq!(record.newest(), None);
        for (epoch, gpu, way, size, seconds, back) in [
            (1, "GPU-1", OWN, 7, 7.0, false),
            (2, "GPU-1", OWN, 1, 1.0, false),
            (2, "GPU-1", TO_HOST, 2, 3.0, false),
            (2, "GPU-2", OWN, 4, 2.0, false),
            (2, "GPU-2", FROM_HOST, 8, 5.0, true),
        ] {
            let mut one = copied(epoch, size, UNMEASURED, seconds);
            (one.predicted, one.back) = (back.then_some(4.0), back);
            record.add(gpu, "1", way, one);
        }
        let newest = record.newest().expect("an epoch");
        let leg = |bytes, seconds, predicted| {
            Some(Leg {
                bytes,
                seconds,
                predicted,
            })
        };
        assert_eq!(newest.epoch, 2);
        assert_eq!(newest.staged, leg(7, 3.0, None));
        assert_eq!(newest.back, leg(8, 5.0, Some(4.0)));
        // Another node's record keeps its own GPUs.
        let mut other = Record::default();
        other.add("GPU-2", "1", OWN, copied(1, 1, UNMEASURED, 1.0));
        other.add("GPU-3", "1", OWN, copied(1, 1, UNMEASURED, 1.0));
        other.take_others(&["GPU-3".to_owned()], record.clone());
        assert_eq!(
            other.copied("GPU-2", "1", OWN),
            record.copied("GPU-2", "1", OWN)
        );
        assert_eq!(other.gpus.len(), 3);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Record::default();
        let mut second = copied(3, 1 << 20, UNMEASURED, 0.5);
        (second.sample.slot, second.predicted) = (None, Some(0.25));
        record.add("GPU-1", "1", OWN, copied(PROBE, 1 << 20, UNMEASURED, 0.125));
        record.add("GPU-1", "1", "GPU-2", second);
        let again = Record::parse(&record.text().expect("text")).expect("record");
        assert_eq!(again, record);
    }

    #[test]
    fn what_no_copy_can_have_been_is_refused_and_never_added() {
        let mut record = Record::default();
        record.add("GPU-1", "1", OWN, copied(1, 5, UNMEASURED, f64::NAN));
        record.add("GPU-1", "1", OWN, copied(1, 0, UNMEASURED, 1.0));
        assert_eq!(record, Record::default());
        let text = r#"{"gpus":[{"uuid":"GPU-1","driver":"1","copied":{"own":[{"epoch":1,"size":1.0,"streams":0,"seconds":1.0,"predicted":null}]}}]}"#;
        let error = Record::parse(text.as_bytes()).expect_err("no streams");
        assert!(
            error.to_string().starts_with("GPU-1, own: number 1 "),
            "{error}"
        );
        assert!(Record::parse(b"{").is_err());
    }
}
