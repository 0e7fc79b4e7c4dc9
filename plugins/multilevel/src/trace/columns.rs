//! The assignment of a trace's columns to a machine's processes, by name.

use super::Trace;
use crate::topology::Topology;
use crate::units::{counted, some_of};
use std::collections::HashMap;

/// The error of a trace whose columns are not the machine's processes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ColumnError {
    #[error("has {}, but {machine} has {}", counted(*.columns, "column"), counted(*.processes, "process"))]
    Count {
        columns: usize,
        processes: usize,
        machine: String,
    },
    #[error("column {column}: {machine} has no process '{name}'; it has {known}")]
    Unknown {
        /// The column, counted from one.
        column: usize,
        name: String,
        machine: String,
        known: String,
    },
    #[error("column {column}: '{name}' is the process of an earlier column")]
    Twice { column: usize, name: String },
}

impl Trace {
    /// Returns the trace with its columns in the order of the machine's processes of the same names. A column `rank N`, the name in
    /// traces of real epochs, belongs to the N-th process if no process has that name.
    pub fn for_machine(&self, topology: &Topology) -> Result<Trace, ColumnError> {
        let processes = topology.processes();
        let machine = || topology.name().to_owned();
        if self.processes.len() != processes.len() {
            return Err(ColumnError::Count {
                columns: self.processes.len(),
                processes: processes.len(),
                machine: machine(),
            });
        }
        let places: HashMap<&str, usize> = processes
            .iter()
            .enumerate()
            .map(|(at, process)| (process.name.as_str(), at))
            .collect();
        let mut column_of = vec![None; processes.len()];
        for (column, name) in self.processes.iter().enumerate() {
            let place = places.get(name.as_str()).copied().or_else(|| rank(name));
            let Some(owner) = place.and_then(|place| column_of.get_mut(place)) else {
                return Err(ColumnError::Unknown {
                    column: column + 1,
                    name: name.clone(),
                    machine: machine(),
                    known: some_of(processes.iter().map(|p| p.name.as_str())),
                });
            };
            if owner.replace(column).is_some() {
                return Err(ColumnError::Twice {
                    column: column + 1,
                    name: name.clone(),
                });
            }
        }
        // There are as many columns as processes, and no process has two, so each has one.
        let ordered = |sizes: &Vec<u64>| {
            let columns = column_of.iter().flatten();
            columns.map(|&column| sizes[column]).collect()
        };
        Ok(Trace {
            processes: processes.iter().map(|p| p.name.clone()).collect(),
            snapshots: self.snapshots.iter().map(ordered).collect(),
        })
    }
}

fn rank(name: &str) -> Option<usize> {
    name.strip_prefix("rank ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(text: &str, topology: &Topology) -> Result<Vec<Vec<u64>>, String> {
        let trace = Trace::parse(text).expect(text).for_machine(topology);
        let trace = trace.map_err(|error| error.to_string())?;
        assert_eq!(trace.processes()[0], topology.processes()[0].name);
        Ok(trace.snapshots().to_vec())
    }

    #[test]
    fn columns_go_by_their_names() {
        let three = Topology::nvswitch(3);
        let wanted = Ok(vec![vec![1, 2, 3], vec![4, 5, 6]]);
        assert_eq!(ordered("G0,G1,G2\n1,2,3\n4,5,6", &three), wanted);
        assert_eq!(ordered("G2,G0,G1\n3,1,2\n6,4,5", &three), wanted);
        assert_eq!(
            ordered("rank 1,rank 2,rank 0\n2,3,1\n5,6,4", &three),
            wanted
        );
    }

    #[test]
    fn columns_of_other_processes_are_refused() {
        let message = |text| ordered(text, &Topology::nvswitch(6)).expect_err(text);
        assert_eq!(
            message("G0,G1\n1,2"),
            "has 2 columns, but nvswitch:6 has 6 processes"
        );
        assert_eq!(
            message("G0,G1,G2,G3,G4,g5\n1,2,3,4,5,6"),
            "column 6: nvswitch:6 has no process 'g5'; it has G0, G1, G2, G3, 2 others"
        );
        assert_eq!(
            message("G0,G1,G2,G3,G4,rank 6\n1,2,3,4,5,6"),
            "column 6: nvswitch:6 has no process 'rank 6'; it has G0, G1, G2, G3, 2 others"
        );
        assert_eq!(
            message("G0,G1,G2,G3,G4,rank 0\n1,2,3,4,5,6"),
            "column 6: 'rank 0' is the process of an earlier column"
        );
    }
}
