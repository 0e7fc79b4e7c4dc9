//! A fault at every fault point, in real jobs of two ranks: with any failure or death there, no committed epoch is lost,
//! and a restart comes to the right end.
//!
//! One program is suspended once. Each test continues a copy of its directory, with a fault, and then without:
//!
//! ```text
//! cargo test --release -p stillpoint-tests --test fault_points                     every point
//! cargo test --release -p stillpoint-tests --test fault_points -- manifest-sync    this one
//! ```
//!
//! * [`case`] - a copy, and the jobs that are started from it
//! * [`checkpoints`] - faults while a checkpoint is written
//! * [`restarts`] - faults while a job is restarted

mod case;
mod checkpoints;
mod restarts;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stillpoint_faults::{Point, Run};

use case::{Case, How};

/// The number of points that `cargo test` tries at the same time; `cargo nextest` has its own number.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The jobs mostly wait for launchers and for one another.
    arguments.test_threads.get_or_insert(AT_ONCE);
    let tests = Point::ALL.iter().flat_map(|point| {
        // Points with GPUs need a node of their own: `tests/gpu/struck.rs`.
        let elsewhere = |run: &Run| matches!(run, Run::Gpu | Run::GpuRestart);
        let runs = point.runs().iter().filter(move |(run, _)| !elsewhere(run));
        runs.map(|(run, pass)| test(*point, *run, *pass))
    });
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}

fn test(point: Point, run: Run, pass: u32) -> Trial {
    let name = format!("{}-{}", run_name(run), point.name());
    Trial::test(name.clone(), move || {
        Case::on_a_copy(&name, point, pass, |case| match run {
            Run::Checkpoint => checkpoints::struck(case, How::Plainly),
            Run::Staging => checkpoints::struck(case, How::OnTiers),
            Run::Suspend => checkpoints::suspended(case),
            Run::Restart => restarts::struck(case, How::Plainly),
            Run::LazyRestart => restarts::struck(case, How::Lazily),
            Run::RestartOnTiers => restarts::struck_on_tiers(case),
            Run::Gpu | Run::GpuRestart => Err("it needs GPUs".to_owned()),
        })
        .map_err(Failed::from)
    })
}

fn run_name(run: Run) -> &'static str {
    match run {
        Run::Checkpoint => "checkpoint",
        Run::Staging => "staging",
        Run::Suspend => "suspend",
        Run::Restart => "restart",
        Run::RestartOnTiers => "tiers",
        Run::LazyRestart => "lazy",
        Run::Gpu => "gpu",
        Run::GpuRestart => "gpu-restart",
    }
}
