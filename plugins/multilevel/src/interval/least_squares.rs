//! Least squares with a handful of constants, none of them below zero.
//!
//! The best constants include some that are zero. The others are the best solution with only these constants, none below zero.
//! There are 2^N cases for the zeros, and all are tried. (It does not suffice to start with all constants and leave out one
//! negative one after the other: the first one left out may have to come back.)

use std::array::from_fn;

/// One equation: the factors of the constants, and the wanted sum.
pub(super) type Equation<const N: usize> = ([f64; N], f64);

/// Finds the constants with the least sum of squared errors, or returns `None` if the equations do not determine them.
pub(super) fn non_negative<const N: usize>(equations: &[Equation<N>]) -> Option<[f64; N]> {
    let equations = Scaled::of(equations)?;
    // If all constants together are determined, so is every subset.
    equations.best([true; N])?;
    let cases = (0..1u32 << N).map(|case| from_fn(|constant| case >> constant & 1 == 1));
    let candidates = cases
        .filter_map(|used| equations.best(used))
        .filter(|found| found.iter().all(|&value| value >= 0.0));
    let best = candidates.min_by(|a, b| equations.error(a).total_cmp(&equations.error(b)))?;
    Some(equations.unscaled(best))
}

/// The same equations, with constants in units that give them equal weight.
struct Scaled<const N: usize> {
    equations: Vec<Equation<N>>,
    units: [f64; N],
}

impl<const N: usize> Scaled<N> {
    /// Returns `None` if a constant has no influence.
    fn of(equations: &[Equation<N>]) -> Option<Scaled<N>> {
        let square = |at: usize| {
            equations
                .iter()
                .map(|(row, _)| row[at] * row[at])
                .sum::<f64>()
        };
        let units: [f64; N] = from_fn(|at| square(at).sqrt());
        if !units.iter().all(|&unit| unit > 0.0 && unit.is_finite()) {
            return None;
        }
        let scaled = |(row, wanted): &Equation<N>| (from_fn(|at| row[at] / units[at]), *wanted);
        Some(Scaled {
            equations: equations.iter().map(scaled).collect(),
            units,
        })
    }

    fn unscaled(&self, found: [f64; N]) -> [f64; N] {
        from_fn(|at| found[at] / self.units[at])
    }

    fn error(&self, found: &[f64; N]) -> f64 {
        let error = |(row, wanted): &Equation<N>| {
            let sum: f64 = row.iter().zip(found).map(|(a, b)| a * b).sum();
            (sum - wanted) * (sum - wanted)
        };
        self.equations.iter().map(error).sum()
    }

    /// Solves the normal equations of the used constants; the others are zero.
    fn best(&self, used: [bool; N]) -> Option<[f64; N]> {
        let (mut matrix, mut right) = ([[0.0; N]; N], [0.0; N]);
        for (row, wanted) in &self.equations {
            for a in 0..N {
                for b in 0..N {
                    matrix[a][b] += row[a] * row[b];
                }
                right[a] += row[a] * wanted;
            }
        }
        for at in (0..N).filter(|&at| !used[at]) {
            matrix.iter_mut().for_each(|row| row[at] = 0.0);
            matrix[at] = [0.0; N];
            (matrix[at][at], right[at]) = (1.0, 0.0);
        }
        solve(matrix, right)
    }
}

/// Solves a system by Gauss and Jordan with the largest pivot, or returns `None` if it is almost singular. Its diagonal
/// is all ones.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot = (column..N)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        if matrix[column][column].abs() <= 1e-12 {
            return None;
        }
        let (row, value) = (matrix[column], right[column]);
        for (at, other) in matrix.iter_mut().enumerate() {
            if at != column {
                let factor = other[column] / row[column];
                right[at] -= factor * value;
                other
                    .iter_mut()
                    .zip(row)
                    .for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    Some(from_fn(|at| right[at] / matrix[at][at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(equations: &[Equation<4>], found: &[f64; 4]) -> f64 {
        let scaled = Scaled::of(equations).expect("all play a part");
        let units = scaled.units;
        scaled.error(&[0, 1, 2, 3].map(|at| found[at] * units[at]))
    }

    /// Solves the same problem in another way: it optimizes one constant after the other beside the others. This
    /// converges, because the error is convex.
    fn by_turns(equations: &[Equation<4>]) -> [f64; 4] {
        let scaled = Scaled::of(equations).expect("all play a part");
        let mut found = [0.0f64; 4];
        for _ in 0..20_000 {
            for at in 0..4 {
                let gradient: f64 = scaled
                    .equations
                    .iter()
                    .map(|(row, wanted)| {
                        let sum: f64 = row.iter().zip(&found).map(|(a, b)| a * b).sum();
                        row[at] * (sum - wanted)
                    })
                    .sum();
                found[at] = (found[at] - gradient).max(0.0);
            }
        }
        scaled.unscaled(found)
    }

    #[test]
    fn equations_that_are_the_same_tell_nothing() {
        assert_eq!(non_negative(&[([1.0, 2.0, 3.0, 4.0], 1.0); 9]), None);
        assert_eq!(non_negative(&[([1.0, 0.0, 3.0, 4.0], 1.0); 9]), None);
        assert_eq!(non_negative::<4>(&[]), None);
    }

    proptest! {
        #[test]
        fn no_constants_are_better(
            equations in proptest::collection::vec(
                (proptest::array::uniform4(0.0f64..1.0), -1.0f64..1.0), 4..30),
        ) {
            let Some(found) = non_negative(&equations) else {
                return Ok(());
            };
            let least = error(&equations, &found);
            prop_assert!(found.iter().all(|&value| value >= 0.0), "{found:?}");
            let other = error(&equations, &by_turns(&equations));
            prop_assert!(least <= other + 1e-9 * (1.0 + other), "{found:?}: {least} and {other}");
            // A step in any direction that stays at or above zero improves nothing.
            for at in 0..4 {
                for step in [1e-4, -1e-4] {
                    let mut beside = found;
                    beside[at] = (beside[at] + step).max(0.0);
                    prop_assert!(error(&equations, &beside) >= least - 1e-12);
                }
            }
        }
    }
}
