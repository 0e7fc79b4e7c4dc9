//! `stillpoint plan`: how often to write checkpoints, and where to put what does not fit.

mod interval;
mod measured;
mod progress;
mod staging;
mod streams;

use std::path::Path;

use clap::{Args, Subcommand};
use stillpoint_multilevel::units::{parse_bytes, parse_seconds};

use super::{Failure, Outcome};

/// Plan checkpoint intervals and staging
#[derive(Debug, Args)]
pub struct Plan {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Staging(staging::Staging),
    Interval(interval::Interval),
    Streams(streams::Streams),
}

impl Plan {
    pub fn execute(self) -> Outcome {
        match self.what {
            What::Staging(staging) => staging.execute(),
            What::Interval(interval) => interval.execute(),
            What::Streams(streams) => streams.execute(),
        }
    }
}

/// A number of bytes on the command line.
fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// A time on the command line, in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    parse_seconds(text).map_err(|error| error.to_string())
}

/// Sizes on the command line, separated by commas.
#[derive(Clone, Debug)]
struct Sizes(Vec<u64>);

fn sizes(text: &str) -> Result<Sizes, String> {
    let parse = |(at, size)| parse_bytes(size).map_err(|error| format!("number {at}: {error}"));
    (1..)
        .zip(text.split(','))
        .map(parse)
        .collect::<Result<_, _>>()
        .map(Sizes)
}

/// A file's text.
fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::failed(format!("{}: cannot read: {error}", path.display())))
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("{}: cannot write: {error}", path.display())))
}

/// Writes drawings into a directory, which is made if need be.
fn draw(directory: &Path, drawings: impl IntoIterator<Item = (String, String)>) -> Outcome {
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::failed(format!("{}: cannot make: {error}", directory.display()))
    })?;
    drawings
        .into_iter()
        .try_for_each(|(name, svg)| write(&directory.join(name), &svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_size_in_a_list_is_counted() {
        assert_eq!(
            sizes("1M,2M").map(|sizes| sizes.0),
            Ok(vec![1_000_000, 2_000_000])
        );
        let error = sizes("1M,-2M").expect_err("negative");
        assert_eq!(error, "number 2: '-2M' is negative");
    }
}
