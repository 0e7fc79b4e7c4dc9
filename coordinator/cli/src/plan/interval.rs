//! `stillpoint plan interval`.

use std::path::PathBuf;

use clap::Args;
use stillpoint_multilevel::chart::{Axis, Chart, Mark, Series};
use stillpoint_multilevel::interval::{Advice, Costs};
use stillpoint_multilevel::units::show_seconds;

use super::{measured, seconds, write};
use crate::{CommandResult, Failure, print, print_json};

/// Find the checkpoint interval that wastes the least time
///
/// With --json: {"costs": {"mttf", "checkpoint", "restart"}, "best": {"seconds", "waste"}, "young": ..., "daly": ...}.
#[derive(Debug, Args)]
pub struct Interval {
    /// Mean time between failures of the whole job: 12h, 7d
    #[arg(long, env = "STILLPOINT_MTTF", value_parser = seconds, allow_hyphen_values = true, value_name = "TIME")]
    mttf: f64,

    /// Time that a checkpoint holds the job up
    #[arg(long, env = "STILLPOINT_CHECKPOINT", value_parser = seconds, allow_hyphen_values = true, value_name = "TIME")]
    checkpoint: Option<f64>,

    /// Time that a restart takes [default: as long as a checkpoint]
    #[arg(long, env = "STILLPOINT_RESTART", value_parser = seconds, allow_hyphen_values = true, value_name = "TIME")]
    restart: Option<f64>,

    /// Take the costs from the epochs of a checkpoint directory: the time to write and to read them
    #[arg(long, env = "STILLPOINT_MEASURED", value_name = "DIR")]
    measured: Option<PathBuf>,

    /// Draw waste over interval into a file
    #[arg(long, env = "STILLPOINT_SVG", value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

impl Interval {
    pub fn execute(self) -> CommandResult {
        let advice = self.costs()?.advice();
        let chart = chart(&advice);
        if let Some(file) = &self.svg {
            write(file, &chart.to_svg())?;
        }
        match self.json {
            true => print_json(&advice),
            false => print(&(in_words(&advice) + "\n" + &chart.to_letters(64, 14))),
        }
    }

    fn costs(&self) -> Result<Costs, Failure> {
        let checkpoint = match (self.checkpoint, &self.measured) {
            (Some(checkpoint), _) => checkpoint,
            (None, Some(directory)) => measured::checkpoint_seconds(directory)?,
            (None, None) => {
                return Err(Failure::failed(
                    "checkpoint: give --checkpoint TIME, or --measured DIR to take it from epochs",
                ));
            }
        };
        let restart = match (self.restart, &self.measured) {
            (Some(restart), _) => restart,
            (None, Some(directory)) => measured::restart_seconds(directory)?,
            (None, None) => checkpoint,
        };
        Costs::checked(self.mttf, checkpoint, restart)
            .map_err(|error| Failure::failed(error.to_string()))
    }
}

fn in_words(advice: &Advice) -> String {
    let Costs {
        mttf,
        checkpoint,
        restart,
    } = advice.costs;
    let mut text = format!(
        "failures every {}, checkpoints of {}, restarts of {}\n\
         a checkpoint every {}: {:.2} % of the time is wasted\n",
        show_seconds(mttf),
        show_seconds(checkpoint),
        show_seconds(restart),
        show_seconds(advice.best.seconds),
        100.0 * advice.best.waste,
    );
    for (name, interval) in [("Young", advice.young), ("Daly", advice.daly)] {
        let (time, waste) = (show_seconds(interval.seconds), 100.0 * interval.waste);
        text.push_str(&format!("{name:<6} {time:>9}: {waste:.2} %\n"));
    }
    text
}

/// The waste, from a tenth of the best interval to ten times that interval.
fn chart(advice: &Advice) -> Chart {
    let best = advice.best.seconds;
    let (unit, name) = match best {
        7200.0.. => (3600.0, "hours"),
        120.0.. => (60.0, "minutes"),
        _ => (1.0, "seconds"),
    };
    let intervals = (0..=60).map(|step| best * 10f64.powf(f64::from(step - 30) / 30.0));
    let points = intervals.map(|seconds| (seconds / unit, 100.0 * advice.costs.waste(seconds)));
    let best = vec![(best / unit, 100.0 * advice.best.waste)];
    Chart::of(
        "Expected waste",
        Axis::logarithmic(format!("interval ({name})")),
        Axis::linear("% of the time"),
        [
            Series::of("waste", Mark::Line, points.collect()),
            Series::of("best", Mark::Dots, best),
        ],
    )
}
