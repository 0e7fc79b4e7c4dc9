//! `stillpoint plan streams`.

mod fitted;
mod recorded;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use stillpoint_multilevel::interval::{models, parse_samples};
use stillpoint_multilevel::units::{show_bytes, show_seconds};

use self::fitted::Fitted;
use self::recorded::Recorded;
use super::{read, size};
use crate::{CommandResult, Failure, print, print_json};

/// Fit the model of checkpoints that are copied in streams
///
/// Fits it to measurements of a machine, to the epochs of a checkpoint directory, or, without either, to the published tables.
/// Prints the samples with the model's errors, its constants, and the streams and slots that it would choose for each size.
/// With --json: the constants in seconds and seconds per byte (of the published tables: per element), "samples" with their residuals and
/// "chosen"; of --samples also, for each number of streams, from what size on it pays and the time for --size; of --measured {"ways"}.
#[derive(Debug, Args)]
pub struct Streams {
    /// Measurements of a machine: lines of size,streams,time as in "256 MB,4,31ms", or of size,streams,time,slot for copies
    /// made in slots
    #[arg(
        long,
        visible_alias = "table",
        env = "STILLPOINT_SAMPLES",
        value_name = "FILE"
    )]
    samples: Option<PathBuf>,

    /// Checkpoint directory whose epochs have copied GPU memory: fits the ways of each GPU
    #[arg(
        long,
        env = "STILLPOINT_MEASURED",
        value_name = "DIR",
        conflicts_with = "samples"
    )]
    measured: Option<PathBuf>,

    /// Size of a checkpoint
    #[arg(long, env = "STILLPOINT_SIZE", value_parser = size, allow_hyphen_values = true, default_value = "256MB")]
    size: u64,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    fitted: Fitted,
    size: u64,
    streams: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    streams: u32,
    pays_from: Option<f64>,
    seconds: f64,
}

impl Streams {
    pub fn execute(self) -> CommandResult {
        if let Some(directory) = &self.measured {
            let recorded = Recorded::read(directory)?;
            return match self.json {
                true => print_json(&recorded),
                false => print(&recorded.in_words()),
            };
        }
        let Some(file) = &self.samples else {
            let models = models();
            return match self.json {
                true => print_json(&models),
                false => print(&models.to_string()),
            };
        };
        let failed = |error: String| Failure::failed(format!("{}: {error}", file.display()));
        let samples = parse_samples(&read(file)?).map_err(|error| failed(error.to_string()))?;
        let fitted = Fitted::to(&samples).map_err(|error| failed(error.to_string()))?;
        let row = |streams| Row {
            streams,
            pays_from: fitted.model.pays_from(streams),
            seconds: fitted.model.time(self.size as f64, streams),
        };
        let streams = [1, 2, 4, 8, 16].map(row).into();
        let shown = Shown {
            fitted,
            size: self.size,
            streams,
        };
        match self.json {
            true => print_json(&shown),
            false => print(&shown.in_words()),
        }
    }
}

impl Shown {
    fn in_words(&self) -> String {
        let mut text = self.fitted.constants();
        let title = format!("TIME FOR {}", show_bytes(self.size));
        text.push_str(&format!(
            "{:>7} {title:>16} {:>12}\n",
            "STREAMS", "PAYS FROM"
        ));
        for row in &self.streams {
            let time = show_seconds(row.seconds);
            let from = row
                .pays_from
                .map_or_else(String::new, |size| show_bytes(size as u64));
            text.push_str(format!("{:>7} {time:>16} {from:>12}", row.streams).trim_end());
            text.push('\n');
        }
        text + &self.fitted.tables()
    }
}
