//! Traces as text: comma-separated, one snapshot a line, a header with the names of the processes.
//!
//! ```text
//! # anything after a number sign
//! G0,G1,G2
//! 80000000,81 MB,128M
//! ```

use super::Trace;
use crate::units::{counted, parse_bytes};
use std::fmt::Write;

/// An error in a trace, and its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {field}: {problem}")]
pub struct TraceError {
    /// The line, counted from one.
    pub line: usize,
    /// The column's name.
    pub field: String,
    pub problem: String,
}

impl Trace {
    /// Reads a trace's text.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let error = |line: usize, field: &str, problem: String| TraceError {
            line: line + 1,
            field: field.into(),
            problem,
        };
        let lines = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at, line.split('#').next().unwrap_or("").trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty());
        let (at, header) = lines
            .next()
            .ok_or_else(|| error(0, "header", "the trace is empty".into()))?;
        let names: Vec<String> = header
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect();
        if let Some(column) = names
            .iter()
            .position(|name| name.is_empty() || parse_bytes(name).is_ok())
        {
            let problem = format!(
                "column {} needs the name of a process, not '{}'",
                column + 1,
                names[column]
            );
            return Err(error(at, "header", problem));
        }
        if let Some(column) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            let problem = format!("column {} is called '{}' again", column + 1, names[column]);
            return Err(error(at, "header", problem));
        }
        let mut trace = Trace::of(names);
        for (at, line) in lines {
            let mut sizes = Vec::with_capacity(trace.processes.len());
            for (column, cell) in line.split(',').enumerate() {
                let name = trace.processes.get(column).map_or("line", String::as_str);
                sizes.push(
                    parse_bytes(cell).map_err(|problem| error(at, name, problem.to_string()))?,
                );
            }
            let (found, wanted) = (sizes.len(), trace.processes.len());
            trace.record(sizes).map_err(|_| {
                error(
                    at,
                    "line",
                    format!(
                        "has {} where the header has {}",
                        counted(found, "size"),
                        counted(wanted, "name")
                    ),
                )
            })?;
        }
        Ok(trace)
    }

    /// Returns the trace as text that [`Trace::parse`] reads back.
    pub fn to_text(&self) -> String {
        let mut text = self.processes.join(",");
        for sizes in &self.snapshots {
            text.push('\n');
            for (column, size) in sizes.iter().enumerate() {
                let comma = if column == 0 { "" } else { "," };
                write!(text, "{comma}{size}").expect("writing to a string cannot fail");
            }
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_survives_its_text() {
        let trace = Trace::synthetic(5, 20, 3);
        assert_eq!(Trace::parse(&trace.to_text()), Ok(trace));
    }

    #[test]
    fn comments_and_units_are_read() {
        let trace =
            Trace::parse("# from node 3\nG0, G1\n80 MB, 128M # first\n\n1, 2\n").expect("trace");
        assert_eq!(trace.snapshots(), [[80_000_000, 128_000_000], [1, 2]]);
    }

    #[test]
    fn wrong_cells_are_named_with_line_and_column() {
        let message = |text: &str| Trace::parse(text).expect_err(text).to_string();
        assert_eq!(message("G0,G1\n1,2\n1,-2"), "line 3: G1: '-2' is negative");
        assert_eq!(
            message("G0,G1\n1"),
            "line 2: line: has 1 size where the header has 2 names"
        );
        assert_eq!(
            message("G0,G1\n1,2,x"),
            "line 2: line: 'x' is not a number with a unit"
        );
        assert_eq!(
            message("1,2\n3,4"),
            "line 1: header: column 1 needs the name of a process, not '1'"
        );
        assert_eq!(message("\n"), "line 1: header: the trace is empty");
        assert_eq!(
            message("G0,G1,G0\n1,2,3"),
            "line 1: header: column 3 is called 'G0' again"
        );
    }
}
