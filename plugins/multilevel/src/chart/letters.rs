//! Charts for a terminal: a grid of letters as the library's backend.

use std::convert::Infallible;
use std::fmt::Write;

use plotters::coord::ranged1d::{BoldPoints, Ranged};
use plotters::prelude::*;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind,
};

use super::Chart;
use super::scale::{number, shown};

/// The most numbers at an axis.
const LABELS: usize = 6;
/// Rows below the plot: the axis and its numbers.
const BELOW: usize = 2;
/// Columns left of the plot, besides the numbers: a tick and the axis.
const TICK: usize = 2;
/// Columns right of the plot: half of the last number.
const BESIDE: usize = 2;

impl Chart {
    /// Draws the chart in letters, a different one for each series, `columns` wide and `rows` high.
    pub fn to_letters(&self, columns: usize, rows: usize) -> String {
        let labels = self.scales().1.key_points(BoldPoints(LABELS));
        let longest = labels.into_iter().map(|label| number(label).len()).max();
        let edge = longest.unwrap_or(0) + TICK;
        let mut text = format!("{} ({})\n", self.title, self.y.label);
        let width = edge + columns + BESIDE;
        let mut grid = vec![vec![' '; width]; rows + BELOW];
        self.draw_on(Grid(&mut grid), edge)
            .expect("a grid takes everything");
        for letters in grid {
            let line: String = letters.into_iter().collect();
            writeln!(text, "{}", line.trim_end()).expect("a string");
        }
        writeln!(text, "{:>width$}", self.x.label).expect("a string");
        if self.series.len() > 1 {
            for (at, series) in self.series.iter().enumerate() {
                let letter = char::from(letter(at).0);
                writeln!(text, "{:edge$}{letter} {}", "", series.name).expect("a string");
            }
        }
        text
    }

    fn draw_on(&self, grid: Grid, edge: usize) -> Result<(), DrawingAreaErrorKind<Infallible>> {
        let (x, y) = self.scales();
        let mut plot = ChartBuilder::on(&grid.into_drawing_area())
            .x_label_area_size(BELOW as u32)
            .y_label_area_size(edge as u32)
            .margin_right(BESIDE as u32)
            .build_cartesian_2d(x, y)?;
        plot.configure_mesh()
            .disable_mesh()
            .x_labels(LABELS)
            .y_labels(LABELS)
            .set_all_tick_mark_size(1)
            .draw()?;
        for (at, series) in self.series.iter().enumerate() {
            let points = shown(series, plot.as_coord_spec());
            let points = points
                .into_iter()
                .map(|point| Pixel::new(point, letter(at)));
            plot.draw_series(points)?;
        }
        Ok(())
    }
}

/// Returns the mark of a series: a colour of the grid, whose first part is a letter.
fn letter(series: usize) -> RGBColor {
    RGBColor(b"*o+x#@"[series % 6], 0, 0)
}

/// Rows of letters.
struct Grid<'a>(&'a mut [Vec<char>]);

impl Grid<'_> {
    fn put(&mut self, (column, row): BackendCoord, letter: char) {
        let row = usize::try_from(row)
            .ok()
            .and_then(|row| self.0.get_mut(row));
        let column = usize::try_from(column).ok();
        if let Some(place) = row
            .zip(column)
            .and_then(|(row, column)| row.get_mut(column))
        {
            *place = letter;
        }
    }
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Grid<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.0[0].len() as u32, self.0.len() as u32)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Drawn {
        self.put(at, char::from(colour.rgb.0));
        Ok(())
    }

    /// Draws the axes and their ticks, which are the only lines.
    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, _: &S) -> Drawn {
        for column in from.0..to.0 {
            self.put((column, from.1), '-');
        }
        for row in from.1..to.1 {
            self.put((from.0, row), '|');
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (column, row): BackendCoord,
    ) -> Drawn {
        let length = text.chars().count() as i32;
        let first = match style.anchor().h_pos {
            HPos::Left => column,
            HPos::Center => column - length / 2,
            HPos::Right => column - length,
        };
        let row = match style.anchor().v_pos {
            // Below an axis, the library leaves a row for a tick; here that is the axis' own row.
            VPos::Top | VPos::Bottom => row - 1,
            VPos::Center => row,
        };
        for (column, letter) in (first..).zip(text.chars()) {
            self.put((column, row), letter);
        }
        Ok(())
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
