//! Charts for a terminal.

use super::Chart;
use super::scale::number;
use std::fmt::Write;

impl Chart {
    /// The chart in letters, each series its own, `columns` wide and `rows` high.
    pub fn to_letters(&self, columns: usize, rows: usize) -> String {
        let (x, y) = self.scales();
        let mut grid = vec![vec![' '; columns]; rows];
        for (at, series) in self.series.iter().enumerate() {
            let letter = b"*o+x#@"[at % 6] as char;
            for &(across, up) in &series.points {
                if let (Some(across), Some(up)) = (x.share(across), y.share(up)) {
                    let column = ((columns - 1) as f64 * across)
                        .round()
                        .clamp(0.0, (columns - 1) as f64) as usize;
                    let row = ((rows - 1) as f64 * (1.0 - up))
                        .round()
                        .clamp(0.0, (rows - 1) as f64) as usize;
                    grid[row][column] = letter;
                }
            }
        }
        let (low, high) = (number(y.low), number(y.high));
        let edge = low.len().max(high.len());
        let mut text = format!("{} ({})\n", self.title, self.y.label);
        for (row, letters) in grid.iter().enumerate() {
            let label = if row == 0 {
                high.as_str()
            } else if row == rows - 1 {
                low.as_str()
            } else {
                ""
            };
            let line: String = letters.iter().collect();
            writeln!(text, "{label:>edge$} |{}", line.trim_end()).expect("a string");
        }
        let (low, high) = (number(x.low), number(x.high));
        writeln!(text, "{:edge$} +{}", "", "-".repeat(columns)).expect("a string");
        let gap = columns.saturating_sub(low.len() + high.len());
        writeln!(
            text,
            "{:edge$}  {low}{:gap$}{high}  {}",
            "", "", self.x.label
        )
        .expect("a string");
        if self.series.len() > 1 {
            for (at, series) in self.series.iter().enumerate() {
                writeln!(
                    text,
                    "{:edge$}  {} {}",
                    "",
                    b"*o+x#@"[at % 6] as char,
                    series.name
                )
                .expect("a string");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::chart::tests::chart;

    #[test]
    fn letters_show_highest_at_the_top() {
        let text = chart(false).to_letters(20, 6);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains('*') && lines[1].trim_start().starts_with("20"));
        assert_eq!(text.matches('*').count(), 3);
    }
}
