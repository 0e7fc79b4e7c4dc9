//! Many ranks on one host: a test whether any part of an epoch or of a restart grows faster than the ranks.

use std::fs;
use std::time::Duration;

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde_json::Value;
use stillpoint_tests::Failed;

use crate::options::Options;
use crate::programs;
use crate::raw;
use crate::running::{Medium, Running, figure, pause};
use crate::table::Table;

/// Seconds for the work after a commit: the application is let go, and the writer's resources are freed.
const AFTERWARDS: f64 = 0.3;

/// Measures epochs and restarts of ranks that use only MPI, and leave the cores to others.
pub fn of_one_host(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [
        ("ms of an epoch", 0),
        ("ms stopped", 0),
        ("processor ms of each rank", 1),
        ("processor ms of the coordinator", 1),
        ("restart, s", 2),
        ("native `mpirun`, s", 2),
    ];
    let head = "ranks without memory of their own on one host, to tmpfs";
    let mut table = Table::new("ranks", head, &columns);
    for ranks in [2, 16, 32] {
        let told = ["0", "rest"];
        let mut running = Running::start_of(ranks, Medium::Memory, &[], &program, &told)?;
        for _ in 0..options.times(3, 10) {
            let processes = Processes::of(&running)?;
            let before = processes.time()?;
            let said = running.checkpoint()?;
            pause(AFTERWARDS);
            let spent = processes.time()?;
            let [of_ranks, of_coordinator] =
                [0, 1].map(|whose| milliseconds(spent[whose] - before[whose]));
            running.suspend()?;
            let figures = [
                figure(&said, "seconds")? * 1e3,
                figure(&said, "stopped_seconds")? * 1e3,
                of_ranks / f64::from(ranks),
                of_coordinator,
                running.restart(&[])?.as_secs_f64(),
                raw::launch_of(ranks, &program)?,
            ];
            table.add(&ranks.to_string(), &figures);
        }
        running.end()?;
    }
    Ok(vec![table])
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The processes of a job.
struct Processes {
    ranks: Vec<Pid>,
    coordinator: Pid,
}

impl Processes {
    fn of(running: &Running) -> Result<Processes, Failed> {
        let path = running.target().join("job.json");
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        let job: Value =
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        let pid = |process: &Value| {
            let pid = process["pid"]
                .as_i64()
                .and_then(|pid| i32::try_from(pid).ok());
            pid.map(Pid::from_raw)
                .ok_or_else(|| failed(format!("no process in {process}")))
        };
        let ranks = job["processes"].as_array().into_iter().flatten();
        Ok(Processes {
            ranks: ranks.map(&pid).collect::<Result<_, _>>()?,
            coordinator: pid(&job["coordinator"])?,
        })
    }

    /// Returns the processor time of all ranks, and of the coordinator, so far, including ended threads.
    fn time(&self) -> Result<[Duration; 2], Failed> {
        let time = |process: &Pid| -> Result<Duration, Failed> {
            let time = clock_getcpuclockid(*process).and_then(|clock| clock.now());
            time.map(Duration::from)
                .map_err(|error| format!("the processor time of process {process}: {error}"))
        };
        let ranks: Duration = self.ranks.iter().map(time).sum::<Result<_, _>>()?;
        Ok([ranks, time(&self.coordinator)?])
    }
}
