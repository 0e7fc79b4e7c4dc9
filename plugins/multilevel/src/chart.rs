//! Line and dot charts as SVG, and as letters for a terminal.

mod letters;

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
/// Room around the plot: left, top, right, bottom.
const MARGIN: (f64, f64, f64, f64) = (70.0, 40.0, 140.0, 50.0);
/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const COLOURS: [&str; 6] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// How the points of a series are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Line,
    Dots,
}

/// Points with a name.
#[derive(Clone, PartialEq, Debug)]
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
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    pub label: String,
    pub logarithmic: bool,
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            logarithmic: false,
        }
    }

    /// Leaves out what is not greater than zero.
    pub fn logarithmic(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            logarithmic: true,
        }
    }
}

/// A chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// Where values lie between the ends of an axis.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>, axis: &Axis) -> Scale {
        let usable =
            values.filter(|value| value.is_finite() && (!axis.logarithmic || *value > 0.0));
        let (mut low, mut high) = usable.fold((f64::MAX, f64::MIN), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        if axis.logarithmic {
            return Scale::logarithmic(low, high);
        }
        // Zero belongs to the picture wherever it is near.
        if low > 0.0 && low < high * 0.4 {
            low = 0.0;
        }
        if low == high {
            high = low + 1.0;
        }
        let rough = (high - low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|&step| step >= rough);
        let step = step.unwrap_or(rough);
        let first = (low / step).floor() as i64;
        let last = (high / step).ceil() as i64;
        let ticks: Vec<f64> = (first..=last).map(|at| at as f64 * step).collect();
        Scale {
            low: first as f64 * step,
            high: last as f64 * step,
            logarithmic: false,
            ticks,
        }
    }

    fn logarithmic(low: f64, high: f64) -> Scale {
        let decades = (high / low).log10();
        let factors: &[f64] = if decades > 3.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let mut ticks = Vec::new();
        for decade in low.log10().floor() as i32 - 1..=high.log10().ceil() as i32 {
            ticks.extend(factors.iter().map(|factor| factor * 10f64.powi(decade)));
        }
        let first = ticks
            .iter()
            .rposition(|&tick| tick <= low * 1.0001)
            .unwrap_or(0);
        let last = ticks
            .iter()
            .position(|&tick| tick >= high * 0.9999)
            .unwrap_or(ticks.len() - 1)
            .max(first + 1);
        let ticks = ticks[first..=last].to_vec();
        Scale {
            low: ticks[0],
            high: ticks[ticks.len() - 1],
            logarithmic: true,
            ticks,
        }
    }

    /// 0 at the low end, 1 at the high one; `None` where the axis has no place for the value.
    fn share(&self, value: f64) -> Option<f64> {
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.is_finite().then_some(share)
    }
}

impl Chart {
    fn scales(&self) -> (Scale, Scale) {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Scale::over(points().map(|point| point.0), &self.x);
        (x, Scale::over(points().map(|point| point.1), &self.y))
    }

    /// The chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let (x, y) = self.scales();
        let (left, top, right, bottom) = MARGIN;
        let (inner_width, inner_height) = (WIDTH - left - right, HEIGHT - top - bottom);
        let across = |value: f64| x.share(value).map(|share| left + share * inner_width);
        let down = |value: f64| {
            y.share(value)
                .map(|share| top + (1.0 - share) * inner_height)
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let mut add = |line: String| svg.push_str(&(line + "\n"));
        add(format!(
            "<text x=\"{left}\" y=\"24\" font-size=\"15\">{}</text>",
            escape(&self.title)
        ));
        let (floor, end) = (HEIGHT - bottom, WIDTH - right);
        for &tick in &x.ticks {
            let at = across(tick).unwrap_or(left);
            add(format!(
                "<path d=\"M{at:.1} {top}V{floor}\" stroke=\"#eee\"/>"
            ));
            let label = number(tick);
            add(format!(
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                floor + 16.0
            ));
        }
        for &tick in &y.ticks {
            let at = down(tick).unwrap_or(floor);
            add(format!(
                "<path d=\"M{left} {at:.1}H{end}\" stroke=\"#ddd\"/>"
            ));
            let label = number(tick);
            add(format!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 6.0,
                at + 4.0
            ));
        }
        add(format!(
            "<path d=\"M{left} {top}V{floor}H{end}\" fill=\"none\" stroke=\"#333\"/>"
        ));
        let middle = (left + end) / 2.0;
        add(format!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 12.0,
            escape(&self.x.label)
        ));
        let middle = (top + floor) / 2.0;
        add(format!(
            "<text transform=\"translate(16 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(&self.y.label)
        ));
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let places = series
                .points
                .iter()
                .filter_map(|point| Some((across(point.0)?, down(point.1)?)));
            let mut path = String::new();
            for (number, (x, y)) in places.enumerate() {
                let letter = if number == 0 || series.mark == Mark::Dots {
                    'M'
                } else {
                    'L'
                };
                write!(path, "{letter}{x:.1} {y:.1}").expect("a string");
                if series.mark == Mark::Dots {
                    path.push_str("h0");
                }
            }
            let width = if series.mark == Mark::Dots { 3.5 } else { 2.0 };
            add(format!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>"
            ));
            let (x, y) = (end + 14.0, top + 10.0 + 20.0 * at as f64);
            add(format!(
                "<path d=\"M{x} {y}h16\" stroke=\"{colour}\" stroke-width=\"4\" stroke-linecap=\"round\"/>"
            ));
            add(format!(
                "<text x=\"{}\" y=\"{}\">{}</text>",
                x + 24.0,
                y + 4.0,
                escape(&series.name)
            ));
        }
        svg + "</svg>\n"
    }
}

/// A tick's number, without digits that say nothing.
fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        Chart {
            title: "a & b".into(),
            x: axis("x"),
            y: axis("y"),
            series: vec![series],
        }
    }

    #[test]
    fn ends_of_the_axes_are_round_and_hold_every_point() {
        for logarithmic in [false, true] {
            let (x, y) = chart(logarithmic).scales();
            for (across, up) in [(1.0, 10.0), (2.0, 20.0), (4.0, 5.0)] {
                for share in [x.share(across), y.share(up)] {
                    assert!((-1e-9..=1.0 + 1e-9).contains(&share.expect("a place")));
                }
            }
            assert!(x.ticks.len() < 10 && y.ticks.len() < 10);
        }
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
