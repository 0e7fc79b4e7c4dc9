//! Charts as SVG.
//!
//! Nothing hides anything: lines differ in their dashes, so that one shows through the gaps of another on top of it; dots are rings,
//! crosses and points, which can all be seen in one place.

use super::scale::number;
use super::{Chart, Mark};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
/// Room above the plot, right of it and below it.
const MARGIN: (f64, f64, f64) = (40.0, 150.0, 50.0);
/// A digit's width.
const DIGIT: f64 = 7.5;
/// Colours that colour-blind readers can tell apart (Okabe and Ito), and what tells lines apart without them.
const STYLES: [(&str, &str); 6] = [
    ("#d55e00", "none"),
    ("#0072b2", "9 6"),
    ("#009e73", "1 6"),
    ("#cc79a7", "10 5 1 5"),
    ("#e69f00", "4 4"),
    ("#56b4e9", "14 4"),
];

impl Chart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let (x, y) = self.scales();
        let (top, right, bottom) = MARGIN;
        let labels: Vec<String> = y.ticks.iter().map(|&tick| number(tick)).collect();
        let longest = labels.iter().map(String::len).max().unwrap_or(0);
        let left = 36.0 + DIGIT * longest as f64;
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
        for (&tick, label) in y.ticks.iter().zip(&labels) {
            let at = down(tick).unwrap_or(floor);
            add(format!(
                "<path d=\"M{left} {at:.1}H{end}\" stroke=\"#ddd\"/>"
            ));
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
        for level in &self.levels {
            let at = down(level.height).unwrap_or(floor);
            add(format!(
                "<path d=\"M{left} {at:.1}H{end}\" stroke=\"#666\" stroke-dasharray=\"3 3\"/>"
            ));
            add(format!(
                "<text x=\"{}\" y=\"{:.1}\" font-size=\"11\" fill=\"#444\">{}</text>",
                end + 6.0,
                at + 4.0,
                escape(&level.name)
            ));
        }
        for (at, series) in self.series.iter().enumerate() {
            let places = series
                .points
                .iter()
                .filter_map(|point| Some((across(point.0)?, down(point.1)?)));
            add(path(at, series.mark, places));
            let (x, y) = (end + 14.0, top + 10.0 + 20.0 * at as f64);
            add(match series.mark {
                Mark::Line => path(at, Mark::Line, [(x - 4.0, y), (x + 24.0, y)].into_iter()),
                Mark::Dots => path(at, Mark::Dots, [(x + 8.0, y)].into_iter()),
            });
            add(format!(
                "<text x=\"{}\" y=\"{}\">{}</text>",
                x + 32.0,
                y + 4.0,
                escape(&series.name)
            ));
        }
        svg + "</svg>\n"
    }
}

/// A series' line or dots.
fn path(at: usize, mark: Mark, places: impl Iterator<Item = (f64, f64)>) -> String {
    let (colour, dashes) = STYLES[at % STYLES.len()];
    let mut path = String::new();
    for (number, (x, y)) in places.enumerate() {
        let letter = if number == 0 || mark == Mark::Dots {
            'M'
        } else {
            'L'
        };
        write!(path, "{letter}{x:.1} {y:.1}").expect("a string");
        if mark == Mark::Dots {
            path.push_str(match at % 3 {
                0 => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0",
                1 => "m-2.5 -2.5l5 5m-5 0l5 -5",
                _ => "h0",
            });
        }
    }
    let width = match (mark, at % 3) {
        // Wide enough to be seen on both sides of what lies on it.
        (Mark::Line, 0) if at == 0 => 4.5,
        (Mark::Line, _) => 2.0,
        (Mark::Dots, 2) => 3.0,
        (Mark::Dots, _) => 1.0,
    };
    let dashes = match mark {
        Mark::Line if dashes != "none" => format!(" stroke-dasharray=\"{dashes}\""),
        _ => String::new(),
    };
    format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linecap=\"round\"{dashes}/>"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
