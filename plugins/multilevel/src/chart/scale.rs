//! Axes: their range, and the places of the numbers.

use std::ops::Range;

use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use super::{Axis, Series};

/// The most numbers at an axis.
pub(super) const LABELS: usize = 10;
/// An axis with more decades has numbers only at its ends.
const FEW_DECADES: f64 = 3.0;

/// The place of values between the ends of an axis.
pub(super) enum Scale {
    Linear(RangedCoordf64),
    Logarithmic(LogCoord<f64>),
}

impl Scale {
    pub(super) fn over(values: impl Iterator<Item = f64>, axis: &Axis) -> Scale {
        let usable =
            values.filter(|value| value.is_finite() && (!axis.logarithmic || *value > 0.0));
        let (mut low, mut high) = usable.fold((f64::MAX, f64::MIN), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        if let Some((first, last)) = axis.range {
            (low, high) = (low.min(first), high.max(last));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        match axis.logarithmic {
            true => Scale::logarithmic(low, high),
            false => Scale::linear(low, high),
        }
    }

    fn linear(mut low: f64, mut high: f64) -> Scale {
        // Zero is shown if it is near.
        if low > 0.0 && low < high * 0.4 {
            low = 0.0;
        }
        if low == high {
            high = low + 1.0;
        }
        // The axis ends at round numbers outside of all values, which adds up to two numbers.
        let inner = RangedCoordf64::from(low..high).key_points(LABELS - 3);
        if let [first, second, ..] = inner[..] {
            let step = second - first;
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        }
        Scale::Linear((low..high).into())
    }

    fn logarithmic(low: f64, high: f64) -> Scale {
        let steps = steps(low / 10.0, high * 10.0, (high / low).log10());
        let first = steps.iter().rposition(|&step| step <= low * 1.0001);
        let last = steps.iter().position(|&step| step >= high * 0.9999);
        let first = first.unwrap_or(0);
        let last = last.unwrap_or(steps.len() - 1).max(first + 1);
        Scale::Logarithmic((steps[first]..steps[last]).log_scale().into())
    }

    /// Tells whether the axis has a place for the value.
    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (matches!(self, Scale::Linear(_)) || value > 0.0)
    }
}

/// Returns the points of a series that have a place on both axes.
pub(super) fn shown(series: &Series, axes: &Cartesian2d<Scale, Scale>) -> Vec<(f64, f64)> {
    let points = series.points.iter().copied();
    points
        .filter(|&(x, y)| axes.x_spec().shows(x) && axes.y_spec().shows(y))
        .collect()
}

/// Returns the round numbers between two values on a logarithmic axis of so many decades.
fn steps(low: f64, high: f64, decades: f64) -> Vec<f64> {
    let factors: &[f64] = match decades > FEW_DECADES + 1e-9 {
        true => &[1.0],
        false => &[1.0, 2.0, 5.0],
    };
    (low.log10().floor() as i32..=high.log10().ceil() as i32)
        .flat_map(|decade| {
            factors
                .iter()
                .map(move |factor| factor * 10f64.powi(decade))
        })
        .filter(|step| (low * 0.9999..=high * 1.0001).contains(step))
        .collect()
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Scale::Linear(scale) => scale.map(value, limit),
            Scale::Logarithmic(scale) => scale.map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Scale::Linear(scale) => scale.key_points(hint),
            // The library would choose powers of ten, and there may be only one.
            Scale::Logarithmic(scale) => {
                let Range { start, end } = scale.range();
                steps(start, end, (end / start).log10())
            }
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Scale::Linear(scale) => scale.range(),
            Scale::Logarithmic(scale) => scale.range(),
        }
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        number(*value)
    }
}

/// Returns a tick's number, without insignificant digits.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let (unit, name) = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        // Four digits are as easy to read as a letter.
        .find(|(unit, _)| size >= f64::max(*unit, 1e4) * (1.0 - 1e-9))
        .unwrap_or((1.0, ""));
    let digits = (3 - (size / unit).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{:.digits$}", value / unit);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [
            0.0, 0.00025, 0.5, 1200.0, 9999.0, 20_000.0, 5e7, -4e5, 2.5e9, 1e6,
        ]
        .map(number);
        assert_eq!(
            shown,
            [
                "0", "0.00025", "0.5", "1200", "9999", "20k", "50M", "-400k", "2.5G", "1M"
            ]
        );
    }

    #[test]
    fn an_axis_that_is_told_its_ends_has_them() {
        let axis = Axis::linear("x").within(0.0, 776.0);
        let scale = Scale::over([350.0, 400.0].into_iter(), &axis);
        assert_eq!(scale.range(), 0.0..800.0);
        let wider = Scale::over([-10.0, 900.0].into_iter(), &axis);
        assert!(wider.range().start <= -10.0 && wider.range().end >= 900.0);
    }
}
