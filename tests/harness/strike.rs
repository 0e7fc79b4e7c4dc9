//! The processes of a job, as its job.json names them, and signals to them.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::Failed;

/// Reads job.json.
pub fn job_file(target: &Path) -> Result<Value, Failed> {
    let path = target.join("job.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn pid(process: &Value) -> Option<i32> {
    process["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok())
}

/// Returns the ranks' processes.
pub fn ranks(target: &Path) -> Result<Vec<i32>, Failed> {
    let job = job_file(target)?;
    let processes = job["processes"].as_array().cloned().unwrap_or_default();
    Ok(processes.iter().filter_map(pid).collect())
}

/// Returns the coordinator's process.
pub fn coordinator(target: &Path) -> Result<i32, Failed> {
    let job = job_file(target)?;
    pid(&job["coordinator"]).ok_or_else(|| format!("no coordinator in job.json: {job}"))
}

/// Sends a signal to a process of a running job, which [`ranks`] or [`coordinator`] has returned.
pub fn signal(pid: i32, signal: Signal) -> Result<(), Failed> {
    if pid <= 1 {
        return Err(format!("{pid} is no process of a job"));
    }
    kill(Pid::from_raw(pid), signal).map_err(|error| format!("cannot signal {pid}: {error}"))
}
