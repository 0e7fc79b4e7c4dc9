//! The command's options.

use std::path::PathBuf;

use clap::Parser;
use stillpoint_tests::place;

/// Measure what epochs cost: seconds and bytes, beside what two processes do that write, copy and read as much
///
/// Takes the whole machine, 6 GiB of its memory and 5 GiB of disk. It reports, and fails nothing but what cannot run.
#[derive(Clone, Debug, Parser)]
#[command(name = "checkpoints")]
pub struct Options {
    /// Fewer repetitions: about eight minutes in all
    #[arg(long)]
    pub quick: bool,

    /// Only the section of that name (full, copies, lazy, move, increments, lammps, small, ranks, tracking); may be given several times
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,

    /// Print the results as JSON instead of tables
    #[arg(long)]
    pub json: bool,

    /// Write tables into bench/results/MACHINE as well, such as epyc-2core-2026-11
    #[arg(long, value_name = "MACHINE")]
    pub publish: Option<String>,

    /// Where results go [default: target/bench]
    #[arg(long, value_name = "DIR", overrides_with = "out")]
    out: Option<PathBuf>,
}

impl Options {
    pub fn wants(&self, section: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| word == section)
    }

    /// Returns the first number for a quick run, or else the second.
    pub fn times(&self, quick: u32, else_: u32) -> u32 {
        if self.quick { quick } else { else_ }
    }

    pub fn folder(&self) -> PathBuf {
        self.out
            .clone()
            .unwrap_or_else(|| place::target().join("bench"))
    }
}
