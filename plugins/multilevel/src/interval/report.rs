//! The results of the interval models, as tables.

use super::streamed::{Model, Sample, fit};
use super::tables::{CHECKPOINT, RESTART, STREAMS, recomputing, samples};
use crate::units::show_seconds;
use serde::Serialize;
use std::fmt;

/// The largest array of the tables.
const LARGEST: f64 = 16_777_216.0;

/// The model fitted to the paper's tables. Field names are those of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Models {
    pub fits: Vec<Fit>,
    pub streaming: Vec<Streaming>,
}

/// The constants for one table, in seconds and seconds an element, and their relative errors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fit {
    pub what: &'static str,
    pub model: Model,
    pub typical_error: f64,
    pub largest_error: f64,
}

/// The size from which streams pay, in elements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Streaming {
    pub what: &'static str,
    pub streams: u32,
    pub pays_from: f64,
    /// The size by measured times, or `None` if streams never pay.
    pub measured_from: Option<f64>,
}

/// Fits the model to the paper's tables.
pub fn models() -> Models {
    let tables = [
        ("checkpoint (Table I)", samples(&CHECKPOINT), true),
        ("restart (Table II)", samples(&RESTART), true),
        ("computing again (III - I - II)", recomputing(), false),
    ];
    let (mut fits, mut streaming) = (Vec::new(), Vec::new());
    for (what, samples, streamed) in tables {
        let Ok(model) = fit(&samples) else { continue };
        let (typical_error, largest_error) = model.errors(&samples);
        fits.push(Fit {
            what,
            model,
            typical_error,
            largest_error,
        });
        for streams in STREAMS.into_iter().filter(|_| streamed) {
            streaming.extend(model.pays_from(streams).map(|pays_from| Streaming {
                what,
                streams,
                pays_from,
                measured_from: measured_from(&samples, streams),
            }));
        }
    }
    Models { fits, streaming }
}

impl fmt::Display for Models {
    /// Markdown: constants, errors, and where streams start to pay.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| what | fixed | each stream | visible, 2^24 | hidden, 2^24 | typical error | largest |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for fit in &self.fits {
            let model = fit.model;
            let times = [
                model.fixed,
                model.per_stream,
                LARGEST * model.visible,
                LARGEST * model.hidden,
            ];
            writeln!(
                f,
                "| {} | {} | {:.1} % | {:.0} % |",
                fit.what,
                times.map(show_seconds).join(" | "),
                100.0 * fit.typical_error,
                100.0 * fit.largest_error
            )?;
        }
        writeln!(
            f,
            "\n| what | streams | pays from, model | pays from, tables |"
        )?;
        writeln!(f, "|---|---|---|---|")?;
        for pays in &self.streaming {
            let measured = pays.measured_from;
            let measured =
                measured.map_or("never".to_owned(), |size| format!("2^{:.0}", size.log2()));
            writeln!(
                f,
                "| {} | {} | 2^{:.1} | {measured} |",
                pays.what,
                pays.streams,
                pays.pays_from.log2()
            )?;
        }
        Ok(())
    }
}

/// Finds the smallest size from which the samples themselves are faster with streams.
fn measured_from(samples: &[Sample], streams: u32) -> Option<f64> {
    let time = |size: f64, streams: u32| {
        samples
            .iter()
            .find(|sample| sample.size == size && sample.streams == streams)
            .map(|sample| sample.seconds)
    };
    let sizes = samples
        .iter()
        .filter(|sample| sample.streams == streams)
        .map(|sample| sample.size);
    let mut from = None;
    for size in sizes {
        let faster = time(size, streams)? < time(size, 1)?;
        from = if faster { from.or(Some(size)) } else { None };
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_say_where_streaming_starts_to_pay() {
        let samples = samples(&CHECKPOINT);
        assert_eq!(measured_from(&samples, 4), Some(524_288.0));
        assert_eq!(measured_from(&samples, 8), Some(1_048_576.0));
        let text = models().to_string();
        assert_eq!(
            text.lines().filter(|line| line.starts_with("| ")).count(),
            2 + 3 + 4
        );
    }
}
