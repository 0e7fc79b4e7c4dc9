//! `stillpoint plan streams`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use stillpoint_multilevel::interval::{Model, fit, models, parse_samples};
use stillpoint_multilevel::units::{show_bytes, show_seconds};

use super::{read, size};
use crate::cli::{Failure, Outcome, print, print_json};

/// Fit the model of checkpoints that are copied in streams
///
/// Without --samples: the published tables. With --json: the constants in seconds and seconds per byte (of the published tables:
/// per element), and for each number of streams from what size on it pays and the time for --size.
#[derive(Debug, Args)]
pub struct Streams {
    /// Measurements of a machine: lines of size,streams,time as in "256 MB,4,31ms"
    #[arg(long, env = "STILLPOINT_SAMPLES", value_name = "FILE")]
    samples: Option<PathBuf>,

    /// Size of the checkpoint to look at
    #[arg(long, env = "STILLPOINT_SIZE", value_parser = size, allow_hyphen_values = true, default_value = "256MB")]
    size: u64,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    model: Model,
    typical_error: f64,
    largest_error: f64,
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
    pub fn execute(self) -> Outcome {
        let Some(file) = &self.samples else {
            let models = models();
            return match self.json {
                true => print_json(&models),
                false => print(&models.to_string()),
            };
        };
        let failed = |error: String| Failure::failed(format!("{}: {error}", file.display()));
        let samples = parse_samples(&read(file)?).map_err(|error| failed(error.to_string()))?;
        let model = fit(&samples).map_err(|error| failed(error.to_string()))?;
        let (typical_error, largest_error) = model.errors(&samples);
        let row = |streams| Row {
            streams,
            pays_from: model.pays_from(streams),
            seconds: model.time(self.size as f64, streams),
        };
        let streams = [1, 2, 4, 8, 16].map(row).into();
        let shown = Shown {
            model,
            typical_error,
            largest_error,
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
        let Model {
            fixed,
            per_stream,
            visible,
            hidden,
        } = self.model;
        let rate = |seconds: f64| match seconds > 0.0 {
            true => show_bytes((1.0 / seconds) as u64) + "/s",
            false => "no time".to_owned(),
        };
        let mut text = format!(
            "fixed {}, each stream {}, never hidden at {}, can be hidden at {}; errors {:.1} %, at most {:.0} %\n",
            show_seconds(fixed),
            show_seconds(per_stream),
            rate(visible),
            rate(hidden),
            100.0 * self.typical_error,
            100.0 * self.largest_error,
        );
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
        text
    }
}
