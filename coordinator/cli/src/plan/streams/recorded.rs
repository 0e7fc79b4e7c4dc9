//! A checkpoint directory's record of copies of GPUs' memory.

use std::path::Path;

use serde::Serialize;
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_gpu_plan::record::{LARGEST, NAME, Record};
use stillpoint_ids::Epoch;
use stillpoint_multilevel::interval::Sample;
use stillpoint_multilevel::units::show_seconds;

use super::fitted::Fitted;
use crate::Failure;

/// All known ways of all GPUs.
#[derive(Serialize)]
pub struct Recorded {
    pub ways: Vec<RecordedWay>,
}

/// One way of a GPU under one version of the driver.
#[derive(Serialize)]
pub struct RecordedWay {
    pub uuid: String,
    pub driver: String,
    pub way: String,
    /// `null` if there are too few measurements.
    pub fitted: Option<Fitted>,
    /// The reason why there is no model.
    pub problem: Option<String>,
    /// The newest copy with a prediction; `null` if there is none.
    pub newest: Option<Newest>,
}

/// The newest copy with a prediction: predicted and measured time, in seconds.
#[derive(Serialize)]
pub struct Newest {
    pub epoch: Epoch,
    pub predicted: f64,
    pub seconds: f64,
}

impl Recorded {
    pub fn read(directory: &Path) -> Result<Recorded, Failure> {
        let path = directory.join(NAME);
        let failed = |error: String| Failure::failed(format!("{}: {error}", path.display()));
        let text = Directory::open(directory, RequiredOwner::Anyones)
            .and_then(|directory| directory.read(NAME, LARGEST))
            .map_err(|error| failed(format!("cannot read: {error}")))?;
        let record = Record::parse(&text).map_err(|error| failed(error.to_string()))?;
        let mut ways = Vec::new();
        for gpu in record.gpus {
            for (way, copied) in gpu.copied {
                let samples: Vec<Sample> = copied.iter().map(|copied| copied.sample).collect();
                let fitted = Fitted::to(&samples);
                let newest = copied.iter().rev().find_map(|copied| {
                    Some(Newest {
                        epoch: copied.epoch,
                        predicted: copied.predicted?,
                        seconds: copied.sample.seconds,
                    })
                });
                let problem = fitted.as_ref().err().map(ToString::to_string);
                ways.push(RecordedWay {
                    uuid: gpu.uuid.clone(),
                    driver: gpu.driver.clone(),
                    way,
                    fitted: fitted.ok(),
                    problem,
                    newest,
                });
            }
        }
        Ok(Recorded { ways })
    }

    pub fn in_words(&self) -> String {
        if self.ways.is_empty() {
            return "no copies are recorded\n".to_owned();
        }
        self.ways
            .iter()
            .map(RecordedWay::in_words)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl RecordedWay {
    fn in_words(&self) -> String {
        let mut text = format!("{}, {}, {}\n", self.uuid, self.driver, self.way);
        if let Some(newest) = &self.newest {
            text += &format!(
                "epoch {}: {} expected, {} taken\n",
                newest.epoch,
                show_seconds(newest.predicted),
                show_seconds(newest.seconds)
            );
        }
        match (&self.fitted, &self.problem) {
            (Some(fitted), _) => text += &(fitted.constants() + &fitted.tables()),
            (None, problem) => text += &format!("{}\n", problem.as_deref().unwrap_or_default()),
        }
        text
    }
}
