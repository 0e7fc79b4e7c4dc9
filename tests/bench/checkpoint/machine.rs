//! The machine behind the figures.

use std::fs;
use std::process::Command;
use std::thread;

/// Describes the processor, memory, kernel, and load by others.
pub fn describe() -> String {
    let value = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or("?".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mpi = Command::new("mpirun").arg("--version").output();
    let mpi = mpi.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    format!(
        "{}, {} cores, {} of memory, Linux {}, {}, load {}",
        value("/proc/cpuinfo", "model name"),
        thread::available_parallelism().map_or(1, usize::from),
        value("/proc/meminfo", "MemTotal"),
        release.trim(),
        mpi.unwrap_or_default()
            .lines()
            .next()
            .unwrap_or("no mpirun"),
        load.split_whitespace().next().unwrap_or("?"),
    )
}
