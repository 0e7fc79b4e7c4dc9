//! The cost of a checkpoint that is copied in several streams, as a function of its size.
//!
//! ```text
//! time(n, S) = fixed + per_stream * (S - 1) + n * (visible + hidden / S)
//! ```
//!
//! With `S` streams the first of `S` chunks is copied before the application goes on, the rest while it computes (Laosooksathit
//! et al., section III): of the part of the copy that can be hidden, one `S`-th stays visible. What cannot be hidden - allocating
//! host memory, the share of the bus - is paid by every byte; every stream costs a little by itself. The four constants are all that
//! measurements of a time can tell apart, and the model is linear in them: they are fitted by least squares of the relative
//! errors, so that small sizes count as much as large ones.

use crate::units::{parse_bytes, parse_seconds};
use serde::Serialize;

/// One measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Bytes, or elements: the model's constants are per unit of it.
    pub size: f64,
    pub streams: u32,
    pub seconds: f64,
}

/// The fitted constants, in seconds and seconds per unit of size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Model {
    pub fixed: f64,
    pub per_stream: f64,
    pub visible: f64,
    pub hidden: f64,
}

/// Why samples give no model.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FitError {
    #[error("samples: {0} are too few, four are needed")]
    TooFew(usize),
    #[error(
        "samples: number {0} has a size, time or number of streams that is not greater than zero"
    )]
    NotPositive(usize),
    #[error(
        "samples: too much alike; two sizes and two numbers of streams at least are needed, large sizes with both"
    )]
    TooAlike,
}

impl Model {
    /// Seconds for a checkpoint of `size` in `streams` streams.
    pub fn time(&self, size: f64, streams: u32) -> f64 {
        let streams = f64::from(streams);
        self.fixed
            + self.per_stream * (streams - 1.0)
            + size * (self.visible + self.hidden / streams)
    }

    /// The size from which on `streams` streams are faster than one; `None` where they never are.
    pub fn pays_from(&self, streams: u32) -> Option<f64> {
        let streams = f64::from(streams);
        // per_stream * (S - 1) = size * hidden * (1 - 1 / S)
        (self.hidden > 0.0 && streams > 1.0)
            .then(|| (self.per_stream * streams / self.hidden).max(0.0))
    }

    /// The errors of the model on samples, relative: root mean square and largest.
    pub fn errors(&self, samples: &[Sample]) -> (f64, f64) {
        let errors: Vec<f64> = samples
            .iter()
            .map(|sample| self.time(sample.size, sample.streams) / sample.seconds - 1.0)
            .collect();
        let square =
            errors.iter().map(|error| error * error).sum::<f64>() / errors.len().max(1) as f64;
        (
            square.sqrt(),
            errors
                .iter()
                .fold(0.0, |largest, error| largest.max(error.abs())),
        )
    }
}

/// Fits the model to samples. All constants come out as zero or more: one that would be negative is left out.
pub fn fit(samples: &[Sample]) -> Result<Model, FitError> {
    if samples.len() < 4 {
        return Err(FitError::TooFew(samples.len()));
    }
    let positive =
        |sample: &Sample| sample.size > 0.0 && sample.seconds > 0.0 && sample.streams > 0;
    if let Some(wrong) = samples.iter().position(|sample| !positive(sample)) {
        return Err(FitError::NotPositive(wrong));
    }
    let largest = samples.iter().map(|sample| sample.size).fold(0.0, f64::max);
    let mut used = [true; 4];
    loop {
        let found = least_squares(samples, largest, used).ok_or(FitError::TooAlike)?;
        match (0..4)
            .filter(|&at| found[at] < 0.0)
            .min_by(|&a, &b| found[a].total_cmp(&found[b]))
        {
            Some(negative) => used[negative] = false,
            None => {
                let [fixed, per_stream, visible, hidden] = found;
                return Ok(Model {
                    fixed,
                    per_stream,
                    visible: visible / largest,
                    hidden: hidden / largest,
                });
            }
        }
    }
}

/// The normal equations of the relative errors, for the constants that are used. Sizes are scaled to at most one.
fn least_squares(samples: &[Sample], largest: f64, used: [bool; 4]) -> Option<[f64; 4]> {
    let mut matrix = [[0.0; 5]; 4];
    for sample in samples {
        let (size, streams) = (sample.size / largest, f64::from(sample.streams));
        let row = [1.0, streams - 1.0, size, size / streams];
        for a in 0..4 {
            for b in 0..4 {
                matrix[a][b] += row[a] * row[b] / (sample.seconds * sample.seconds);
            }
            matrix[a][4] += row[a] / sample.seconds;
        }
    }
    for at in (0..4).filter(|&at| !used[at]) {
        matrix.iter_mut().for_each(|row| row[at] = 0.0);
        matrix[at] = [0.0; 5];
        matrix[at][at] = 1.0;
    }
    solve(matrix)
}

/// Gauss and Jordan with the largest pivot; `None` where the system is as good as singular.
fn solve(mut matrix: [[f64; 5]; 4]) -> Option<[f64; 4]> {
    let scale: f64 = matrix
        .iter()
        .flat_map(|row| &row[..4])
        .fold(0.0, |scale, value| scale.max(value.abs()));
    for column in 0..4 {
        let pivot = (column..4)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        if matrix[column][column].abs() <= 1e-12 * scale {
            return None;
        }
        let row = matrix[column];
        for (at, other) in matrix.iter_mut().enumerate() {
            if at != column {
                let factor = other[column] / row[column];
                other
                    .iter_mut()
                    .zip(row)
                    .for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    Some([0, 1, 2, 3].map(|at| matrix[at][4] / matrix[at][at]))
}

/// What is wrong with a file of samples, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {field}: {problem}")]
pub struct SamplesError {
    pub line: usize,
    pub field: &'static str,
    pub problem: String,
}

/// Reads samples from a machine: lines of `size,streams,time`, as `256 MB,4,31ms`; what follows a `#` does not count.
pub fn parse_samples(text: &str) -> Result<Vec<Sample>, SamplesError> {
    let mut samples = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let error = |field, problem: String| SamplesError {
            line: at + 1,
            field,
            problem,
        };
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [size, streams, seconds] = cells[..] else {
            return Err(error("line", format!("'{line}' is not size,streams,time")));
        };
        let size = parse_bytes(size).map_err(|problem| error("size", problem.to_string()))?;
        let seconds =
            parse_seconds(seconds).map_err(|problem| error("time", problem.to_string()))?;
        let streams = streams.parse().ok().filter(|&streams| streams > 0);
        let streams = streams.ok_or_else(|| {
            error(
                "streams",
                format!("'{}' is not a number of streams", cells[1]),
            )
        })?;
        samples.push(Sample {
            size: size as f64,
            streams,
            seconds,
        });
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::super::tables::{CHECKPOINT, RESTART, recomputing, samples};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_tables_are_met_within_a_few_percent() {
        let checkpoint = fit(&samples(&CHECKPOINT)).expect("Table I");
        let (typical, largest) = checkpoint.errors(&samples(&CHECKPOINT));
        assert!(
            typical < 0.045 && largest < 0.17,
            "{checkpoint:?} {typical} {largest}"
        );
        let restart = fit(&samples(&RESTART)).expect("Table II");
        let (typical, largest) = restart.errors(&samples(&RESTART));
        assert!(
            typical < 0.2 && largest < 0.55,
            "{restart:?} {typical} {largest}"
        );
    }

    #[test]
    fn streaming_starts_to_pay_where_the_tables_say_within_a_factor_of_four() {
        // Table I: four streams lose at 2^18 and win at 2^19, eight win from 2^20; Table II: 2^19 and 2^20.
        let power = |table, streams| {
            fit(&samples(table))
                .expect("fit")
                .pays_from(streams)
                .expect("pays")
                .log2()
        };
        assert!(
            (16.5..19.0).contains(&power(&CHECKPOINT, 4)),
            "{}",
            power(&CHECKPOINT, 4)
        );
        assert!(
            (17.5..20.0).contains(&power(&CHECKPOINT, 8)),
            "{}",
            power(&CHECKPOINT, 8)
        );
        assert!(
            (16.5..19.0).contains(&power(&RESTART, 4)),
            "{}",
            power(&RESTART, 4)
        );
        assert!(
            (17.5..20.0).contains(&power(&RESTART, 8)),
            "{}",
            power(&RESTART, 8)
        );
    }

    #[test]
    fn computing_again_takes_time_by_size_alone() {
        let model = fit(&recomputing()).expect("fit");
        assert!(model.hidden * 16_777_216.0 < 1e-3, "{model:?}");
        assert!(
            (model.time(16_777_216.0, 1) / 0.12343 - 1.0).abs() < 0.03,
            "{model:?}"
        );
    }

    #[test]
    fn samples_that_say_nothing_are_refused() {
        let sample = |size, streams| Sample {
            size,
            streams,
            seconds: 1.0,
        };
        assert_eq!(fit(&[sample(1.0, 1); 3]), Err(FitError::TooFew(3)));
        assert_eq!(fit(&[sample(1.0, 1); 9]), Err(FitError::TooAlike));
        assert_eq!(
            fit(&[
                sample(1.0, 1),
                sample(1.0, 0),
                sample(1.0, 1),
                sample(1.0, 1)
            ]),
            Err(FitError::NotPositive(1))
        );
    }

    #[test]
    fn files_of_samples_are_read_and_their_faults_named() {
        let samples = parse_samples("# size, streams, time\n64MB,1,31ms\n\n64 MB, 4, 0.02\n")
            .expect("samples");
        assert_eq!(
            samples[1],
            Sample {
                size: 64e6,
                streams: 4,
                seconds: 0.02
            }
        );
        let message = |text| parse_samples(text).expect_err(text).to_string();
        assert_eq!(
            message("64MB,1,1s\n64MB,0,1s"),
            "line 2: streams: '0' is not a number of streams"
        );
        assert_eq!(message("-64MB,1,1s"), "line 1: size: '-64MB' is negative");
        assert_eq!(
            message("64MB,1,soon"),
            "line 1: time: 'soon' is not a number with a unit"
        );
        assert_eq!(
            message("64MB,1"),
            "line 1: line: '64MB,1' is not size,streams,time"
        );
    }

    proptest! {
        #[test]
        fn a_model_is_found_again_from_its_own_times(
            fixed in 1e-4f64..1e-1, per_stream in 1e-5f64..1e-2, visible in 1e-11f64..1e-9, hidden in 1e-11f64..1e-9,
        ) {
            let model = Model { fixed, per_stream, visible, hidden };
            let sizes = (10..28).map(|power| f64::from(1u32 << power));
            let grid = sizes.flat_map(|size| [1, 2, 4, 8].map(|streams| (size, streams)));
            let samples: Vec<Sample> =
                grid.map(|(size, streams)| Sample { size, streams, seconds: model.time(size, streams) }).collect();
            let found = fit(&samples).expect("fit");
            for (a, b) in [(found.fixed, fixed), (found.per_stream, per_stream), (found.visible, visible), (found.hidden, hidden)] {
                prop_assert!((a / b - 1.0).abs() < 1e-4, "{found:?} {model:?}");
            }
        }
    }
}
