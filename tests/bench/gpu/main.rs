//! The blocking time of staging GPU memory: `./ci/bench gpu`.
//!
//! The machine is the paper's DGX-1, emulated: the driver's calls copy every byte, over links with limited speed. Sizes are a part of the
//! paper's, and links are slowed down, so that this machine's own overhead is small. The plan's time stands beside each measured one.
//!
//! With `--check` one checkpoint is staged, filled back, drained and filled again, and every byte is compared.

mod check;
mod figures;
mod machine;
mod process;

use std::process::{Command, ExitCode};

use clap::Parser;
use stillpoint_tests::gpu::Gpus;
use stillpoint_tests::{Failed, ensure};

/// Measure how long staging of GPU memory blocks, on emulated GPUs, beside what the plans say
#[derive(Debug, Parser)]
#[command(name = "gpu-staging")]
struct Options {
    /// Snapshots of each trace and each room
    #[arg(long, default_value_t = 3)]
    snapshots: usize,

    /// Stage, fill back, drain and fill one checkpoint, and compare every byte
    #[arg(long)]
    check: bool,

    /// With --check: a fault of the emulated driver that staging is to meet
    #[arg(long, requires = "check")]
    fault: Option<String>,

    /// Stage and give back the device memory of a process that finds the same GPUs as this one, while it lives
    #[arg(long, value_name = "PID", conflicts_with = "check")]
    process: Option<i32>,

    /// With --process: how many times
    #[arg(long, default_value_t = 1)]
    times: usize,

    /// With --process: the file for what copies took
    #[arg(long, value_name = "FILE")]
    record: Option<std::path::PathBuf>,

    /// Where results go [default: target/bench]
    #[arg(long, value_name = "DIR")]
    out: Option<std::path::PathBuf>,

    /// Marks the process that finds the emulated GPUs: this program starts itself with it
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("gpu-staging: {failed}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failed> {
    if let Some(pid) = options.process {
        return process::run(pid, options.times, options.record.as_deref());
    }
    match (options.worker, options.check) {
        (false, _) => start(options),
        (true, true) => check::run(options.fault.as_deref()),
        (true, false) => figures::run(options.snapshots, options.out.as_deref()),
    }
}

/// Starts the GPUs, and this program again so that it finds them.
fn start(options: &Options) -> Result<(), Failed> {
    let gpus = Gpus::start(&machine::dgx1(options.check))?;
    let itself = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(itself);
    command.args(std::env::args_os().skip(1)).arg("--worker");
    gpus.reach(&mut command)?;
    let status = command.status().map_err(|error| error.to_string())?;
    ensure!(status.success(), "on the emulated GPUs: {status}");
    Ok(())
}
