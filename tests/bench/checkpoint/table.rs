//! Tables of medians, with the spread of the figures.

use std::fmt;

use serde_json::{Value, json};

/// Figures of one kind, in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub struct Figures(pub Vec<f64>);

impl Figures {
    pub fn add(&mut self, figure: f64) {
        self.0.push(figure);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// Returns the middle figure, or the mean of two middle ones.
    pub fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() % 2 {
            1 => sorted.get(middle).copied(),
            _ => Some((sorted.get(middle.checked_sub(1)?)? + sorted.get(middle)?) / 2.0),
        }
    }

    /// Returns the least and the largest figure.
    fn ends(&self) -> Option<(f64, f64)> {
        let sorted = self.sorted();
        Some((*sorted.first()?, *sorted.last()?))
    }
}

/// Figures that are measured side by side.
#[derive(Debug)]
pub struct Table {
    /// The mark in the page that it belongs to.
    pub name: &'static str,
    /// The heading of the first column; each other column has a heading and the number of digits after the decimal
    /// point.
    head: &'static str,
    columns: Vec<(&'static str, usize)>,
    rows: Vec<(String, Vec<Figures>)>,
}

impl Table {
    pub fn new(name: &'static str, head: &'static str, columns: &[(&'static str, usize)]) -> Table {
        Table {
            name,
            head,
            columns: columns.to_vec(),
            rows: vec![],
        }
    }

    /// Adds one figure for each column of that row.
    pub fn add(&mut self, row: &str, figures: &[f64]) {
        let at = self.rows.iter().position(|(name, _)| name == row);
        let at = at.unwrap_or_else(|| {
            let empty = vec![Figures::default(); self.columns.len()];
            self.rows.push((row.to_owned(), empty));
            self.rows.len() - 1
        });
        for (column, figure) in self.rows[at].1.iter_mut().zip(figures) {
            column.add(*figure);
        }
    }

    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|(name, figures)| {
            let columns = self.columns.iter().zip(figures);
            let columns =
                columns.map(|((title, _), figures)| ((*title).to_owned(), json!(figures.0)));
            json!({ "row": name, "figures": columns.collect::<serde_json::Map<_, _>>() })
        });
        json!({ "name": self.name, "rows": rows.collect::<Vec<_>>() })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles: Vec<&str> = self.columns.iter().map(|(title, _)| *title).collect();
        writeln!(f, "| {} | {} | times |", self.head, titles.join(" | "))?;
        writeln!(f, "|---|{}--:|", "--:|".repeat(titles.len()))?;
        for (name, figures) in &self.rows {
            write!(f, "| {name} |")?;
            let mut times = 0;
            for ((_, digits), figures) in self.columns.iter().zip(figures) {
                times = times.max(figures.0.len());
                match (figures.median(), figures.ends()) {
                    (Some(median), Some((least, largest))) if figures.0.len() > 1 => {
                        write!(
                            f,
                            " {median:.digits$} ({least:.digits$} to {largest:.digits$}) |"
                        )?;
                    }
                    (Some(median), _) => write!(f, " {median:.digits$} |")?,
                    _ => write!(f, " |")?,
                }
            }
            writeln!(f, " {times} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn a_row_has_medians_and_the_ends() {
        let mut table = Table::new("t", "way", &[("s", 1), ("MB", 0)]);
        table.add("a", &[3.0, 10.0]);
        table.add("b", &[1.0, 2.0]);
        table.add("a", &[1.0, 20.0]);
        table.add("a", &[2.0, 60.0]);
        let text = table.to_string();
        let expected = "| way | s | MB | times |\n|---|--:|--:|--:|\n\
                        | a | 2.0 (1.0 to 3.0) | 20 (10 to 60) | 3 |\n| b | 1.0 | 2 | 1 |\n";
        assert_eq!(text, expected);
    }
}
