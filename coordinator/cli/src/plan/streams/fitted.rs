//! A model fitted to samples: the samples beside the model's errors, its constants, and its choices for some sizes.

use serde::Serialize;
use stillpoint_gpu_plan::Copies;
use stillpoint_multilevel::interval::{FitError, Model, Sample, fit};
use stillpoint_multilevel::units::{show_bytes, show_seconds};

/// Sizes whose streams are shown.
const SIZES: [u64; 7] = [
    1 << 20,
    16 << 20,
    64 << 20,
    256 << 20,
    1 << 30,
    4 << 30,
    16 << 30,
];

/// The measurements, and the fitted model.
#[derive(Serialize)]
pub struct Fitted {
    pub model: Model,
    pub typical_error: f64,
    pub largest_error: f64,
    pub samples: Vec<Measured>,
    pub chosen: Vec<Chosen>,
}

/// One sample.
#[derive(Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub sample: Sample,
    /// The model's error, as a share of the sample's time.
    pub residual: f64,
}

/// The way to copy `size` bytes.
#[derive(Serialize)]
pub struct Chosen {
    pub size: u64,
    #[serde(flatten)]
    pub copies: Copies,
    pub seconds: f64,
}

impl Fitted {
    pub fn to(samples: &[Sample]) -> Result<Fitted, FitError> {
        let model = fit(samples)?;
        let (typical_error, largest_error) = model.errors(samples);
        let measured = |&sample: &Sample| Measured {
            sample,
            residual: model.residual(&sample),
        };
        let chosen = |size| {
            let copies = Copies::fastest(&model, size);
            Chosen {
                size,
                copies,
                seconds: copies.seconds(&model, size),
            }
        };
        Ok(Fitted {
            model,
            typical_error,
            largest_error,
            samples: samples.iter().map(measured).collect(),
            chosen: SIZES.map(chosen).into(),
        })
    }

    /// The constants, in one line.
    pub fn constants(&self) -> String {
        let rate = |seconds: f64| match seconds > 0.0 {
            true => show_bytes((1.0 / seconds) as u64) + "/s",
            false => "no time".to_owned(),
        };
        let Model {
            fixed,
            per_stream,
            per_copy,
            visible,
            hidden,
        } = self.model;
        let copy = match per_copy > 0.0 {
            true => format!(", each copy {}", show_seconds(per_copy)),
            false => String::new(),
        };
        format!(
            "fixed {}, each stream {}{copy}, never hidden at {}, can be hidden at {}; errors {:.1} %, at most {:.0} %\n",
            show_seconds(fixed),
            show_seconds(per_stream),
            rate(visible),
            rate(hidden),
            100.0 * self.typical_error,
            100.0 * self.largest_error,
        )
    }

    /// A table of all samples, and one of all sizes with the choice for each.
    pub fn tables(&self) -> String {
        let mut text = format!(
            "{:>10} {:>7} {:>10} {:>10} {:>9}\n",
            "SIZE", "STREAMS", "SLOT", "MEASURED", "MODEL"
        );
        for Measured { sample, residual } in &self.samples {
            let slot = sample
                .slot
                .map_or("-".to_owned(), |slot| show_bytes(slot as u64));
            text += &format!(
                "{:>10} {:>7} {slot:>10} {:>10} {:>+7.1} %\n",
                show_bytes(sample.size as u64),
                sample.streams,
                show_seconds(sample.seconds),
                100.0 * residual,
            );
        }
        text += &format!(
            "{:>10} {:>7} {:>10} {:>10}\n",
            "SIZE", "STREAMS", "SLOT", "CHOSEN"
        );
        for chosen in &self.chosen {
            text += &format!(
                "{:>10} {:>7} {:>10} {:>10}\n",
                show_bytes(chosen.size),
                chosen.copies.streams,
                show_bytes(chosen.copies.slot),
                show_seconds(chosen.seconds),
            );
        }
        text
    }
}
