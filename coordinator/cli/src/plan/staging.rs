//! `stillpoint plan staging`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use stillpoint_multilevel::compare::{self, Budget, Comparisons};
use stillpoint_multilevel::report::Report;
use stillpoint_multilevel::simulate::{SCHEDULERS, Simulation, Summary, summarise};
use stillpoint_multilevel::topology::read_topology;
use stillpoint_multilevel::trace::Trace;
use stillpoint_multilevel::units::{counted, show_seconds};
use stillpoint_multilevel::{Problem, ScheduleError, Topology};

use super::progress::Bar;
use super::{Sizes, measured, read, size, sizes, write};
use crate::{CommandResult, Failure, print, print_json};

/// Plan transfers between processes whose checkpoints do not fit on their fast tiers
///
/// Prints the fastest plan, its blocking time, the bottleneck that proves it, and other schedulers' plans for comparison.
/// With --trace, runs each on a series of checkpoints.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("task").required(true).multiple(true).args(["topology", "record"]))]
pub struct Staging {
    /// The machine: a TOML file, or dgx1, dgx1-shared-pcie, nvswitch:N, all-to-all:N, cluster:N
    #[arg(long, env = "STILLPOINT_TOPOLOGY", value_name = "NAME|FILE")]
    topology: Option<String>,

    /// Checkpoint size of each process, separated by commas [default: the file's]
    #[arg(long, env = "STILLPOINT_SIZES", value_parser = sizes, allow_hyphen_values = true, conflicts_with_all = ["measured", "remainder"])]
    sizes: Option<Sizes>,

    /// Data of each process that does not fit locally, in place of --sizes
    #[arg(long, env = "STILLPOINT_REMAINDER", value_parser = sizes, allow_hyphen_values = true, requires = "spare")]
    remainder: Option<Sizes>,

    /// Room of each process for others' data, with --remainder
    #[arg(long, env = "STILLPOINT_SPARE", value_parser = sizes, allow_hyphen_values = true, requires = "remainder")]
    spare: Option<Sizes>,

    /// Free space on every fast tier, in place of the machine's own
    #[arg(long, env = "STILLPOINT_FREE", value_parser = size, allow_hyphen_values = true, value_name = "SIZE")]
    free: Option<u64>,

    /// Transfers are multiples of this
    #[arg(long, env = "STILLPOINT_CHUNK", value_parser = size, value_name = "SIZE", default_value = "1")]
    chunk: u64,

    /// Take the sizes from the newest epoch in a checkpoint directory
    #[arg(long, env = "STILLPOINT_MEASURED", value_name = "DIR")]
    measured: Option<PathBuf>,

    /// Schedulers to compare the fastest plan with
    #[arg(
        long,
        env = "STILLPOINT_COMPARE",
        value_enum,
        default_value = "limited"
    )]
    compare: Compare,

    /// Run all schedulers over a trace: a line with the processes' names, then a line of sizes for each snapshot
    #[arg(long, env = "STILLPOINT_TRACE", value_name = "FILE", conflicts_with_all = ["sizes", "remainder", "measured"])]
    trace: Option<PathBuf>,

    /// Write a trace of all epochs of the --measured directory
    #[arg(
        long,
        env = "STILLPOINT_RECORD",
        value_name = "FILE",
        requires = "measured"
    )]
    record: Option<PathBuf>,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

/// The limit of the time for other schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Compare {
    /// Nothing else
    None,
    /// Other schedulers, if they take a fraction of a second
    Limited,
    /// Other schedulers, however long they take
    All,
}

impl From<Compare> for Comparisons {
    fn from(compare: Compare) -> Comparisons {
        match compare {
            Compare::None => Comparisons::None,
            Compare::Limited => Comparisons::Limited,
            Compare::All => Comparisons::All,
        }
    }
}

/// The hint after a comparison that was left out.
const WAIT: &str = "(--compare all waits for what was left out)\n";

impl Staging {
    pub fn execute(self) -> CommandResult {
        if let (Some(file), Some(directory)) = (&self.record, &self.measured) {
            write(file, &measured::trace(directory)?.to_text())?;
        }
        let Some(machine) = &self.topology else {
            return Ok(());
        };
        let (mut topology, file) = machine_of(machine)?;
        if let Some(free) = self.free {
            topology = topology.with_free(free);
        }
        if let Some(file) = &self.trace {
            return self.simulate(&topology, file);
        }
        self.plan(&topology, file)
    }

    fn plan(self, topology: &Topology, file: Option<SizesInFile>) -> CommandResult {
        let problem = match (self.remainder, self.spare, &self.measured, self.sizes) {
            (Some(remainder), Some(spare), ..) => {
                Problem::from_remainders(topology, remainder.0, spare.0)
            }
            (_, _, Some(directory), _) => Problem::new(topology, &measured::sizes(directory)?),
            (_, _, _, Some(sizes)) => Problem::new(topology, &sizes.0),
            _ => match file.as_ref().and_then(|file| file.sizes.as_ref()) {
                Some(sizes) => Problem::new(topology, sizes),
                None => {
                    let name = topology.name();
                    return Err(Failure::failed(format!(
                        "sizes: '{name}' lacks the size of some process: give --sizes or --measured, or a size in the file"
                    )));
                }
            },
        };
        let failed = |error: ScheduleError| Failure::failed(located(&error, file.as_ref()));
        let problem = problem.map_err(failed)?;
        let mut report = Report::of(&problem, self.chunk).map_err(failed)?;
        if !self.json {
            print(&report.to_string())?;
        }
        report.compare(&problem, self.chunk, self.compare.into());
        if self.json {
            return print_json(&report);
        }
        let hint = if report.left_out.is_empty() { "" } else { WAIT };
        print(&(report.comparisons() + hint))
    }

    /// Shows the plans first, as soon as they are there, and then the comparisons.
    fn simulate(&self, topology: &Topology, file: &Path) -> CommandResult {
        let failed = |error: String| Failure::failed(format!("{}: {error}", file.display()));
        let trace = Trace::parse(&read(file)?).map_err(|error| failed(error.to_string()))?;
        let trace = trace
            .for_machine(topology)
            .map_err(|error| failed(error.to_string()))?;
        let snapshots = trace.snapshots().len();
        let failed = |error: ScheduleError| failed(error.to_string());
        let show = |text: &str| match self.json {
            true => Ok(()),
            false => print(text),
        };
        let start = Instant::now();
        let now = || start.elapsed().as_secs_f64();
        let mut bar = Bar::new(snapshots);
        let simulation = Simulation::new(topology, &trace, &now, &mut || bar.step());
        let mut simulation = simulation.map_err(failed)?;
        drop(bar);
        let exact = SCHEDULERS.len() - 1;
        let summary = Summary::of(simulation.outcomes(), exact);
        show(&format!(
            "{} on {}\n{:<10} {:>12} {:>12} {:>14} {:>12}\n{}",
            counted(snapshots, "snapshot"),
            topology.name(),
            "SCHEDULER",
            "BLOCKING",
            "OVERHEAD",
            "LARGEST",
            "TO DECIDE",
            row(&summary, snapshots)
        ))?;
        let Some(mut budget) = Budget::of(self.compare.into()) else {
            return match self.json {
                true => print_json(&[summary]),
                false => Ok(()),
            };
        };
        let mut left_out = false;
        for scheduler in 0..exact {
            let mut bar = Bar::new(snapshots);
            simulation
                .compare(scheduler, &mut budget, &mut || bar.step())
                .map_err(failed)?;
            drop(bar);
            let summary = Summary::of(simulation.outcomes(), scheduler);
            left_out |= summary.left_out > 0;
            show(&row(&summary, snapshots))?;
        }
        if left_out {
            show(WAIT)?;
        }
        match self.json {
            true => print_json(&summarise(simulation.outcomes())),
            false => Ok(()),
        }
    }
}

fn row(summary: &Summary, snapshots: usize) -> String {
    let name = summary.scheduler;
    let left_out = format!(
        "left out in {} of {}: would take more than {} steps each, or {} together",
        summary.left_out,
        counted(snapshots, "snapshot"),
        compare::STEPS,
        compare::STEPS_OF_A_TRACE
    );
    if summary.left_out == snapshots && snapshots > 0 {
        return format!("{name:<10} {left_out}\n");
    }
    let mut text = format!(
        "{name:<10} {:>12} {:>10.1} % {:>12.1} % {:>12}\n",
        show_seconds(summary.blocking.mean),
        100.0 * summary.overhead.mean,
        100.0 * summary.overhead.largest,
        show_seconds(summary.run_time.median),
    );
    if summary.left_out > 0 {
        text += &format!("{:<10} {left_out}\n", "");
    }
    text
}

/// The sizes of the processes' checkpoints in a file, with their lines.
struct SizesInFile {
    file: String,
    sizes: Option<Vec<u64>>,
    lines: Vec<usize>,
}

/// The error with its place in the file.
fn located(error: &ScheduleError, file: Option<&SizesInFile>) -> String {
    match (error, file) {
        (ScheduleError::DoesNotFit { first, .. }, Some(found)) => {
            let line = found.lines.get(*first).copied().unwrap_or(1);
            format!("{}: line {line}: {error}", found.file)
        }
        (error, Some(found)) => format!("{}: {error}", found.file),
        (error, None) => error.to_string(),
    }
}

/// A built-in machine, or the one that a file describes.
fn machine_of(name: &str) -> Result<(Topology, Option<SizesInFile>), Failure> {
    if let Some(topology) = Topology::named(name) {
        return Ok((topology, None));
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(Failure::failed(format!(
            "topology: there is no file '{name}', and no machine with that name: {}",
            Topology::NAMES
        )));
    }
    let read =
        read_topology(&read(path)?).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    let (sizes, lines) = (read.sizes, read.lines);
    let file = name.to_owned();
    Ok((read.topology, Some(SizesInFile { file, sizes, lines })))
}
