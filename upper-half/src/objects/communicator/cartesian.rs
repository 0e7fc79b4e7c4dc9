//! Cartesian grids, as far as a restart needs them (MPI 5.0, section 8.5).

/// A grid of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub dims: Vec<i32>,
    pub periods: Vec<bool>,
}

impl Grid {
    /// The grid that `MPI_Cart_sub` makes of the dimensions to keep.
    pub fn sub(&self, keep: &[bool]) -> Self {
        let kept = |place: &usize| keep.get(*place).copied().unwrap_or(false);
        let places: Vec<usize> = (0..self.dims.len()).filter(kept).collect();
        Self {
            dims: places
                .iter()
                .filter_map(|p| self.dims.get(*p))
                .copied()
                .collect(),
            periods: places
                .iter()
                .filter_map(|p| self.periods.get(*p))
                .copied()
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        Grid {
            dims: vec![2, 3, 4],
            periods: vec![false, true, false],
        }
    }

    #[test]
    fn sub_grids_keep_their_periods() {
        let sub = grid().sub(&[false, true, true]);
        assert_eq!(
            sub,
            Grid {
                dims: vec![3, 4],
                periods: vec![true, false]
            }
        );
        assert!(grid().sub(&[false; 3]).dims.is_empty());
    }
}
