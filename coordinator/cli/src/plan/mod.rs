//! `stillpoint plan`: the interval of checkpoints, the staging of data that does not fit, and the gain of incremental checkpoints.

mod incremental;
mod interval;
mod measured;
mod progress;
mod staging;
mod streams;

use std::path::Path;

use clap::{Args, Subcommand};
use stillpoint_multilevel::units::{parse_bandwidth, parse_bytes, parse_seconds};

use super::{CommandResult, Failure};

/// Plan checkpoint intervals, staging and increments
#[derive(Debug, Args)]
pub struct Plan {
    #[command(subcommand)]
    what: PlanCommand,
}

#[derive(Debug, Subcommand)]
enum PlanCommand {
    Staging(staging::Staging),
    Interval(interval::Interval),
    Streams(streams::Streams),
    Incremental(incremental::Incremental),
}

impl Plan {
    pub fn execute(self) -> CommandResult {
        match self.what {
            PlanCommand::Staging(staging) => staging.execute(),
            PlanCommand::Interval(interval) => interval.execute(),
            PlanCommand::Streams(streams) => streams.execute(),
            PlanCommand::Incremental(incremental) => incremental.execute(),
        }
    }
}

/// A number of bytes on the command line.
fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// Bytes per second on the command line.
fn rate(text: &str) -> Result<u64, String> {
    match parse_bandwidth(text) {
        Ok(0) => Err("give more than 0 bytes a second".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// A share on the command line: `0.3`, `30%`.
fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a share: write 0 to 1, or 0% to 100%");
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let share = number / unit;
    (0.0..=1.0)
        .contains(&share)
        .then_some(share)
        .ok_or_else(wrong)
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

fn write(path: &Path, text: &str) -> CommandResult {
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("{}: cannot write: {error}", path.display())))
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

    #[test]
    fn shares_are_read_as_people_write_them() {
        for (text, value) in [("0.3", 0.3), ("30%", 0.3), ("100 %", 1.0), ("0", 0.0)] {
            assert_eq!(share(text), Ok(value));
        }
        for wrong in ["", "%", "30", "101%", "-1%", "nan", "some"] {
            let error = share(wrong).expect_err(wrong);
            assert!(error.ends_with("is not a share: write 0 to 1, or 0% to 100%"));
        }
    }

    #[test]
    fn nothing_is_no_rate() {
        assert_eq!(rate("1.5 GB/s"), Ok(1_500_000_000));
        assert!(rate("0").is_err() && rate("-1").is_err() && rate("fast").is_err());
    }
}
