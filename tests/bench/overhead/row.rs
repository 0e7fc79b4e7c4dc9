//! Figures taken in turn, and their statistics.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::settings::{Setting, Unit};
use crate::way::Way;

/// One launch's figures, round by round: nanoseconds, or percent.
type Launch = BTreeMap<Way, Vec<f64>>;

/// A setting's figures.
///
/// The place of a launch's memory influences its speed, so the rounds of one launch are not independent. Each launch
/// gives one value, the median of its rounds, and all statistics are over these values.
#[derive(Clone, Debug)]
pub struct Row {
    pub setting: Setting,
    launches: Vec<Launch>,
}

/// Many values of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    /// Half of the values lie between these.
    pub quartiles: (f64, f64),
    /// The median lies between these in 95 of 100 cases, if the values are independent (order statistics).
    pub sure: (f64, f64),
    pub count: usize,
}

impl Spread {
    /// Returns nothing if there are no values.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let last = count.checked_sub(1)?;
        let quantile = |share: f64| {
            let at = share * last as f64;
            let (below, rest) = (at.floor() as usize, at.fract());
            values[below] + rest * (values[(below + 1).min(last)] - values[below])
        };
        // Ranks of the interval's ends, by the normal approximation of the binomial distribution.
        let half = 0.98 * (count as f64).sqrt();
        let middle = count as f64 / 2.0;
        let low = (middle - half).floor().max(0.0) as usize;
        let high = ((middle + half).ceil() as usize).min(last);
        Some(Spread {
            median: quantile(0.5),
            quartiles: (quantile(0.25), quantile(0.75)),
            sure: (values[low.min(last)], values[high]),
            count,
        })
    }

    fn to_json(self) -> Value {
        json!({
            "median": self.median,
            "quartiles": [self.quartiles.0, self.quartiles.1],
            "median_95": [self.sure.0, self.sure.1],
        })
    }
}

impl Row {
    pub fn new(setting: Setting) -> Row {
        Row {
            setting,
            launches: vec![],
        }
    }

    /// Begins a launch: later figures come from other processes than earlier ones.
    pub fn begin_launch(&mut self) {
        self.launches.push(Launch::new());
    }

    /// Adds one round's figures, one of each way.
    pub fn add(&mut self, round: &[(Way, f64)]) {
        let Some(launch) = self.launches.last_mut() else {
            return;
        };
        for (way, figure) in round {
            launch.entry(*way).or_default().push(*figure);
        }
    }

    /// Returns the figures of one way, in their displayed unit.
    pub fn value(&self, way: Way) -> Option<Spread> {
        let unit = self.setting.unit;
        self.over_launches(|launch| Some(launch.get(&way)?.iter().map(|f| unit.of(*f)).collect()))
    }

    /// Returns a way's cost over native, pair by pair: percent of the time, or points if percents are compared.
    pub fn overhead(&self, way: Way) -> Option<Spread> {
        let compared = |(native, other): (&f64, &f64)| match self.setting.unit {
            Unit::Percent => other - native,
            _ => 100.0 * (other / native - 1.0),
        };
        self.over_launches(|launch| {
            let (native, other) = (launch.get(&Way::Native)?, launch.get(&way)?);
            Some(native.iter().zip(other).map(compared).collect())
        })
    }

    /// Returns the spread of each launch's median of values.
    fn over_launches(&self, read: impl Fn(&Launch) -> Option<Vec<f64>>) -> Option<Spread> {
        let medians = self.launches.iter().filter_map(|l| Spread::of(read(l)?));
        Spread::of(medians.map(|spread| spread.median).collect())
    }

    /// Counts the rounds in all launches.
    pub fn rounds(&self) -> usize {
        let of = |launch: &Launch| launch.get(&Way::Native).map_or(0, Vec::len);
        self.launches.iter().map(of).sum()
    }

    pub fn launches(&self) -> usize {
        self.launches.len()
    }

    /// Returns the ways in which the setting was measured.
    fn ways(&self) -> BTreeSet<Way> {
        self.launches
            .iter()
            .flat_map(|l| l.keys().copied())
            .collect()
    }

    pub fn to_json(&self) -> Value {
        let ways = self.ways().into_iter().map(|way| {
            let mut about = json!({ "value": self.value(way).map(Spread::to_json) });
            if way != Way::Native {
                about["overhead_percent"] = json!(self.overhead(way).map(Spread::to_json));
            }
            (way.name().to_owned(), about)
        });
        json!({
            "group": self.setting.group.name(),
            "measure": self.setting.measure,
            "size": self.setting.size,
            "label": self.setting.label,
            "unit": self.setting.unit.name(),
            "launches": self.launches(),
            "pairs": self.rounds(),
            "ways": ways.collect::<serde_json::Map<_, _>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Group;

    #[test]
    fn a_spread_holds_its_median() {
        let spread = Spread::of((0..101).rev().map(f64::from).collect()).unwrap();
        assert_eq!(spread.median, 50.0);
        assert_eq!(spread.quartiles, (25.0, 75.0));
        assert!(spread.sure.0 > 38.0 && spread.sure.1 < 62.0);
        assert!(spread.sure.0 < 50.0 && spread.sure.1 > 50.0);
        assert_eq!(Spread::of(vec![7.0]).unwrap().sure, (7.0, 7.0));
        assert_eq!(Spread::of(vec![]), None);
    }

    fn row(unit: Unit) -> Row {
        let mut row = Row::new(Setting::new(Group::Overlap, "x", "x", 0, unit));
        row.begin_launch();
        row
    }

    #[test]
    fn ratios_are_taken_pair_by_pair_and_percents_subtracted() {
        let mut ratios = row(Unit::Nanoseconds);
        // The machine is ten times slower in the second round: the pair does not see it.
        ratios.add(&[(Way::Native, 100.0), (Way::Clock, 110.0)]);
        ratios.add(&[(Way::Native, 1000.0), (Way::Clock, 1100.0)]);
        assert!((ratios.overhead(Way::Clock).unwrap().median - 10.0).abs() < 1e-9);
        assert_eq!(ratios.overhead(Way::Barrier), None);
        let mut percents = row(Unit::Percent);
        percents.add(&[(Way::Native, 40.0), (Way::Clock, 38.0)]);
        assert_eq!(percents.overhead(Way::Clock).unwrap().median, -2.0);
    }

    #[test]
    fn a_launch_has_one_voice_however_many_rounds_it_had() {
        let mut row = row(Unit::Nanoseconds);
        for _ in 0..9 {
            row.add(&[(Way::Native, 100.0), (Way::Clock, 150.0)]);
        }
        for _ in 0..2 {
            row.begin_launch();
            row.add(&[(Way::Native, 100.0), (Way::Clock, 101.0)]);
        }
        assert!((row.overhead(Way::Clock).unwrap().median - 1.0).abs() < 1e-9);
        assert_eq!((row.launches(), row.rounds()), (3, 11));
    }
}
