//! Line and dot charts as SVG, and as letters for a terminal.

mod letters;
mod scale;
mod svg;

use scale::Scale;
use serde::Serialize;

/// The way to draw the points of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    Line,
    Dots,
}

/// Points with a name.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    pub name: String,
    pub mark: Mark,
    pub points: Vec<(f64, f64)>,
}

impl Series {
    pub fn of(name: impl Into<String>, mark: Mark, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            mark,
            points,
        }
    }
}

/// A direction of the chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Axis {
    pub label: String,
    pub logarithmic: bool,
    /// A range that is always shown, so that charts can be compared side by side.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            logarithmic: false,
            range: None,
        }
    }

    /// Makes a logarithmic axis, which leaves out values that are not greater than zero.
    pub fn logarithmic(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            logarithmic: true,
            range: None,
        }
    }

    /// Always shows that range.
    pub fn within(self, low: f64, high: f64) -> Axis {
        Axis {
            range: Some((low, high)),
            ..self
        }
    }
}

/// A chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Heights to compare with.
    pub levels: Vec<Level>,
}

/// A height with a name, drawn as a thin line across the chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Level {
    pub name: String,
    pub height: f64,
}

impl Chart {
    pub fn of(
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        series: impl IntoIterator<Item = Series>,
    ) -> Chart {
        Chart {
            title: title.into(),
            x,
            y,
            series: series.into_iter().collect(),
            levels: Vec::new(),
        }
    }

    /// Adds a height to compare with.
    pub fn with_level(mut self, name: impl Into<String>, height: f64) -> Chart {
        let name = name.into();
        self.levels.push(Level { name, height });
        self
    }

    fn scales(&self) -> (Scale, Scale) {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Scale::over(points().map(|point| point.0), &self.x);
        let levels = self.levels.iter().map(|level| level.height);
        let heights = points().map(|point| point.1).chain(levels);
        (x, Scale::over(heights, &self.y))
    }
}

#[cfg(test)]
mod tests {
    use super::scale::LABELS;
    use super::*;
    use plotters::coord::ranged1d::{BoldPoints, Ranged};

    pub(in crate::chart) fn chart(logarithmic: bool) -> Chart {
        let axis = if logarithmic {
            Axis::logarithmic
        } else {
            Axis::linear
        };
        let series = Series::of(
            "a < b",
            Mark::Line,
            vec![(1.0, 10.0), (2.0, 20.0), (4.0, 5.0)],
        );
        Chart::of("a & b", axis("x"), axis("y"), [series])
    }

    #[test]
    fn ends_of_the_axes_are_round_and_hold_every_point() {
        for logarithmic in [false, true] {
            let (x, y) = chart(logarithmic).scales();
            for scale in [&x, &y] {
                let ticks = scale.key_points(BoldPoints(LABELS));
                let ends = scale.range();
                assert!((3..=LABELS).contains(&ticks.len()), "{ticks:?}");
                assert_eq!(ticks.first(), Some(&ends.start));
                assert_eq!(ticks.last(), Some(&ends.end));
            }
            for (across, up) in [(1.0, 10.0), (2.0, 20.0), (4.0, 5.0)] {
                for (scale, value) in [(&x, across), (&y, up)] {
                    assert!((0..=100).contains(&scale.map(&value, (0, 100))));
                }
            }
        }
    }

    #[test]
    fn series_and_levels_can_be_told_apart() {
        let points = vec![(1.0, 10.0), (2.0, 20.0)];
        for mark in [Mark::Line, Mark::Dots] {
            let shapes = [0, 1, 2].map(|drawn| {
                let series = [0, 1, 2].map(|at| {
                    let points = (at == drawn).then(|| points.clone());
                    Series::of("same", mark, points.unwrap_or_default())
                });
                let chart = Chart::of("same", Axis::linear("x"), Axis::linear("y"), series);
                without_colours(&chart.to_svg())
            });
            // The shapes differ without colours too, whichever series is on top.
            assert!(shapes[0] != shapes[1] && shapes[1] != shapes[2] && shapes[0] != shapes[2]);
        }
        let svg = chart(false).with_level("as high as that", 500.0).to_svg();
        assert!(svg.contains("as high as that") && svg.contains(">\n500\n</text>"));
    }

    fn without_colours(svg: &str) -> String {
        let mut parts = svg.split('#');
        let first = parts.next().unwrap_or_default().to_owned();
        first + &parts.map(|part| &part[6..]).collect::<String>()
    }

    #[test]
    fn text_is_escaped_and_nothing_is_not_a_number() {
        for logarithmic in [false, true] {
            let svg = chart(logarithmic).to_svg();
            assert!(
                svg.contains("a &lt; b")
                    && svg.contains("a &amp; b")
                    && !svg.contains("NaN")
                    && !svg.contains("inf")
            );
        }
        let empty = Chart {
            series: Vec::new(),
            ..chart(true)
        };
        assert!(!empty.to_svg().contains("NaN"));
        let zero = Chart {
            series: vec![Series::of("zero", Mark::Dots, vec![(0.0, 0.0)])],
            ..chart(true)
        };
        assert!(!zero.to_svg().contains("inf") && !zero.to_svg().contains("NaN"));
    }
}
