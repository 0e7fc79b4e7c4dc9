//! Axes: where a value lies, and where the numbers stand.

use super::Axis;

/// Where values lie between the ends of an axis.
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    logarithmic: bool,
    pub(super) ticks: Vec<f64>,
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
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.is_finite().then_some(share)
    }
}

/// A tick's number, without digits that say nothing.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let (unit, name) = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        // Four digits are read as fast as a letter.
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
        assert_eq!((scale.low, scale.high), (0.0, 800.0));
        let wider = Scale::over([-10.0, 900.0].into_iter(), &axis);
        assert!(wider.low <= -10.0 && wider.high >= 900.0);
    }
}
