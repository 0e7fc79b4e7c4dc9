//! Traces: the checkpoint size of every process, snapshot after snapshot.
//!
//! A trace is generated from the paper's published statistics, recorded from real epochs, or read from text.

mod columns;
mod rtm;
mod synthetic;
mod text;

pub use columns::ColumnError;
pub use text::TraceError;

use crate::units::counted;

/// A series of snapshots, each with one size in bytes per process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    processes: Vec<String>,
    snapshots: Vec<Vec<u64>>,
}

/// The error of a recorded epoch whose processes are not those of the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("snapshot {snapshot} has {}, but the trace has {}", counted(*.found, "size"), counted(*.processes, "process"))]
pub struct RecordError {
    pub snapshot: usize,
    pub found: usize,
    pub processes: usize,
}

impl Trace {
    /// Makes an empty trace, to record into.
    pub fn of(processes: Vec<String>) -> Trace {
        Trace {
            processes,
            snapshots: Vec::new(),
        }
    }

    /// Adds a snapshot: the bytes that each process wrote in one epoch.
    pub fn record(&mut self, sizes: Vec<u64>) -> Result<(), RecordError> {
        let (snapshot, found, processes) =
            (self.snapshots.len(), sizes.len(), self.processes.len());
        if found != processes {
            return Err(RecordError {
                snapshot,
                found,
                processes,
            });
        }
        self.snapshots.push(sizes);
        Ok(())
    }

    pub fn processes(&self) -> &[String] {
        &self.processes
    }

    pub fn snapshots(&self) -> &[Vec<u64>] {
        &self.snapshots
    }

    /// Returns the average size in each snapshot.
    pub fn averages(&self) -> Vec<f64> {
        // Each size may be as large as a quantity can be, so their sum may exceed 64 bits.
        let sum = |sizes: &Vec<u64>| sizes.iter().copied().map(u128::from).sum::<u128>();
        let average = |sizes: &Vec<u64>| sum(sizes) as f64 / sizes.len() as f64;
        self.snapshots.iter().map(average).collect()
    }

    /// Returns the trace's statistics, to compare with the paper.
    pub fn statistics(&self) -> Statistics {
        let mut averages = self.averages();
        let total = averages.iter().sum();
        averages.sort_by(f64::total_cmp);
        let percentile = |percent: usize| {
            averages
                .get((averages.len() * percent / 100).min(averages.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0.0)
        };
        let extremes = || {
            self.snapshots
                .iter()
                .filter_map(|sizes| Some((*sizes.iter().min()?, *sizes.iter().max()?)))
        };
        Statistics {
            snapshots: self.snapshots.len(),
            processes: self.processes.len(),
            bytes_per_process: total,
            average_percentiles: [50, 75, 98].map(percentile),
            largest_difference: extremes()
                .map(|(least, most)| most - least)
                .max()
                .unwrap_or(0),
            largest_ratio: extremes()
                .map(|(least, most)| most as f64 / least.max(1) as f64)
                .fold(0.0, f64::max),
        }
    }
}

/// The statistics that the paper publishes of its trace.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Statistics {
    pub snapshots: usize,
    pub processes: usize,
    /// The sum over all snapshots, averaged over the processes.
    pub bytes_per_process: f64,
    /// The 50th, 75th and 98th percentile of the snapshots' averages.
    pub average_percentiles: [f64; 3],
    /// The largest difference between the smallest and largest size of one snapshot.
    pub largest_difference: u64,
    pub largest_ratio: f64,
}

fn gpu_names(count: usize) -> Vec<String> {
    (0..count).map(|gpu| format!("G{gpu}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_sizes_have_an_average() {
        let mut trace = Trace::of((0..9).map(|rank| rank.to_string()).collect());
        let most = crate::units::LARGEST - 1;
        trace.record(vec![most; 9]).expect("nine sizes");
        assert_eq!(trace.averages(), [most as f64]);
    }

    #[test]
    fn a_recorded_trace_keeps_its_processes() {
        let mut trace = Trace::of(vec!["rank 0".into(), "rank 1".into()]);
        trace.record(vec![1, 2]).expect("two sizes");
        let error = trace.record(vec![1, 2, 3]).expect_err("three sizes");
        assert_eq!(
            error.to_string(),
            "snapshot 1 has 3 sizes, but the trace has 2 processes"
        );
        assert_eq!(trace.averages(), [1.5]);
    }
}
