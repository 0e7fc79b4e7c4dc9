//! The beginnings and ends of datatypes, as MPI counts them.

/// Lower bound and extent of a datatype.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub low: i64,
    pub extent: i64,
}

/// That many elements with these bounds side by side, that many bytes from the beginning.
#[derive(Clone, Copy)]
pub struct Run {
    pub at: i64,
    pub count: i64,
    pub bounds: Bounds,
}

impl Run {
    /// The offsets of its first byte and of its end, or `None` if a number is too large. It must have an element.
    pub fn ends(self) -> Option<(i64, i64)> {
        let last = self.bounds.extent.checked_mul(self.count - 1)?;
        let low = self.at.checked_add(self.bounds.low)?;
        let high = low.checked_add(self.bounds.extent)?;
        let (low, high) = (
            low.checked_add(last.min(0))?,
            high.checked_add(last.max(0))?,
        );
        Some((low, high))
    }
}

/// The bounds of all of them.
pub fn around(runs: impl Iterator<Item = Run>) -> Option<Bounds> {
    let mut all: Option<(i64, i64)> = None;
    for run in runs {
        let (low, high) = run.ends()?;
        all = Some(match all {
            None => (low, high),
            Some((lowest, highest)) => (low.min(lowest), high.max(highest)),
        });
    }
    let (low, high) = all.unwrap_or((0, 0));
    Some(Bounds {
        low,
        extent: high.checked_sub(low)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: i64, count: i64, low: i64, extent: i64) -> Run {
        let bounds = Bounds { low, extent };
        Run { at, count, bounds }
    }

    #[test]
    fn bounds_are_those_of_the_outermost_elements() {
        let of = |runs: &[Run]| around(runs.iter().copied()).map(|it| (it.low, it.extent));
        assert_eq!(of(&[]), Some((0, 0)));
        assert_eq!(of(&[run(8, 3, 0, 4)]), Some((8, 12)));
        let far = run(5_000_000_000, 2, -1, 4);
        assert_eq!(of(&[run(0, 1, 0, 4), far]), Some((0, 5_000_000_007)));
        // Elements that go backwards: the last one is the lowest.
        assert_eq!(of(&[run(100, 3, 0, -4)]), Some((92, 4)));
        assert_eq!(of(&[run(0, i64::MAX, 0, 4)]), None);
    }
}
