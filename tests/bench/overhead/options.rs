//! The command's options.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use stillpoint_tests::mpis::{self, Mpi};
use stillpoint_tests::{Failed, place};

use crate::way::Way;

/// Measure what Stillpoint costs: the same work natively and under `stillpoint run`, in turn, compared pair by pair
///
/// Takes the whole machine: other work on it scatters the figures. It reports, and fails nothing but what cannot run.
#[derive(Clone, Debug, Parser)]
#[command(name = "overhead")]
pub struct Options {
    /// The approximate length of the whole run
    #[arg(long, default_value_t = 15.0, value_parser = minutes)]
    pub minutes: f64,

    /// Rounds of the short measures, and of the programs, instead of as many as fit into the time
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,

    /// Launches over which the rounds of the short measures are spread: the place of a launch's memory influences its speed
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub launches: u32,

    /// Only the group of that name (blocking, nonblocking, overlap, messages, local, start, programs), or measures whose
    /// names begin so; may be given several times
    #[arg(long, value_name = "WORD")]
    pub only: Vec<String>,

    /// The MPI that starts jobs and that the bench's own programs are built for: the machine's own, or one of `ci/mpis target/mpis` by its name
    #[arg(long, value_name = "NAME", default_value = mpis::OWN)]
    pub mpi: String,

    /// The ways that are compared with the native runs
    #[arg(long, value_delimiter = ',', default_value = "again,clock,barrier")]
    pub ways: Vec<Way>,

    /// Measure under another checkpointer too: the command that stands before a program, as `stillpoint run --` does
    ///
    /// Whole programs are not run under it.
    #[arg(long, value_name = "COMMAND", value_parser = words)]
    pub other: Option<Words>,

    /// The compiler for the bench's programs under the other checkpointer, if that is not the MPI's own
    #[arg(long, value_name = "COMMAND", requires = "other", value_parser = words)]
    pub other_compiler: Option<Words>,

    /// Print the results as JSON instead of tables
    #[arg(long)]
    pub json: bool,

    /// Write tables and figures into bench/results/MACHINE as well, such as epyc-2core-2026-11
    #[arg(long, value_name = "MACHINE")]
    pub publish: Option<String>,

    /// Where results go [default: target/bench]
    #[arg(long, value_name = "DIR", overrides_with = "out")]
    pub out: Option<PathBuf>,
}

/// A command: words separated by blanks.
#[derive(Clone, Debug)]
pub struct Words(pub Vec<String>);

fn words(text: &str) -> Result<Words, String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match words.is_empty() {
        true => Err("a command has a word at least".to_owned()),
        false => Ok(Words(words)),
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes < 10_000.0 => Ok(minutes),
        _ => Err("minutes are a number above 0".to_owned()),
    }
}

impl Options {
    /// Tells whether a measure of a group is wanted.
    pub fn wants(&self, group: &str, measure: &str) -> bool {
        let named = |word: &String| word == group || measure.starts_with(word.as_str());
        self.only.is_empty() || self.only.iter().any(named)
    }

    /// Returns the MPI.
    pub fn mpi(&self) -> Result<Mpi, Failed> {
        Mpi::named(&place::target().join("mpis"), &self.mpi)
    }

    /// Returns the title of a group's table or figure: with the MPI's name, unless it is the machine's own.
    pub fn titled(&self, name: &str) -> String {
        match self.mpi.as_str() {
            mpis::OWN => name.to_owned(),
            mpi => format!("{mpi} {name}"),
        }
    }

    /// Returns a share of the whole time.
    pub fn share(&self, share: f64) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0 * share)
    }

    /// Returns the native way first, then those compared with it.
    pub fn all_ways(&self) -> Vec<Way> {
        let other = self.other.as_ref().map(|_| Way::Other);
        self.own_ways().into_iter().chain(other).collect()
    }

    /// Returns the same without another checkpointer.
    pub fn own_ways(&self) -> Vec<Way> {
        let others = self.ways.iter().copied().filter(|way| *way != Way::Native);
        std::iter::once(Way::Native).chain(others).collect()
    }
}
