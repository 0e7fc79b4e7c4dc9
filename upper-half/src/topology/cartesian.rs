//! Cartesian grids: pure functions on dimensions and coordinates (MPI 5.0, section 8.5). Row-major, as the
//! standard has it. Errors are standard-ABI error classes.

use stillpoint_wrappers::neutral::constants::PROC_NULL;

/// `MPI_ERR_RANK`.
pub const ERR_RANK: i32 = 6;
/// `MPI_ERR_ARG`.
pub const ERR_ARG: i32 = 13;
/// `MPI_ERR_DIMS`.
pub const ERR_DIMS: i32 = 12;

/// A grid of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub dims: Vec<i32>,
    pub periods: Vec<bool>,
}

impl Grid {
    /// Processes in the grid.
    pub fn size(&self) -> i32 {
        self.dims.iter().product()
    }

    /// `MPI_Cart_coords` in all dimensions.
    pub fn coordinates(&self, rank: i32) -> Result<Vec<i32>, i32> {
        if rank < 0 || rank >= self.size() {
            return Err(ERR_RANK);
        }
        let mut rest = rank;
        let mut below = self.size();
        Ok(self
            .dims
            .iter()
            .map(|dim| {
                below /= dim;
                let at = rest / below;
                rest %= below;
                at
            })
            .collect())
    }

    /// `MPI_Cart_rank`: coordinates wrap around where the grid is periodic.
    pub fn rank(&self, coordinates: &[i32]) -> Result<i32, i32> {
        let mut rank = 0;
        for ((dim, period), at) in self.dims.iter().zip(&self.periods).zip(coordinates) {
            let at = match (0..*dim).contains(at) {
                true => *at,
                false if *period => at.rem_euclid(*dim),
                false => return Err(ERR_ARG),
            };
            rank = rank * dim + at;
        }
        Ok(rank)
    }

    /// `MPI_Cart_shift`: `(source, destination)`.
    pub fn shift(&self, rank: i32, direction: i32, displacement: i32) -> Result<(i32, i32), i32> {
        let place = usize::try_from(direction).map_err(|_| ERR_DIMS)?;
        let (Some(dim), Some(period)) = (self.dims.get(place), self.periods.get(place)) else {
            return Err(ERR_DIMS);
        };
        if displacement == 0 {
            return Ok((rank, rank));
        }
        let below: i32 = self.dims.iter().skip(place + 1).product();
        let at = rank / below % dim;
        let moved = |by: i64| {
            let to = i64::from(at) + by;
            let to = if *period {
                to.rem_euclid(i64::from(*dim))
            } else if (0..i64::from(*dim)).contains(&to) {
                to
            } else {
                return PROC_NULL;
            };
            rank + (to as i32 - at) * below
        };
        let by = i64::from(displacement);
        Ok((moved(-by), moved(by)))
    }

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
    fn coordinates_and_ranks_are_inverse() {
        let grid = grid();
        for rank in 0..24 {
            let at = grid.coordinates(rank).unwrap();
            assert_eq!(grid.rank(&at), Ok(rank));
        }
        assert_eq!(grid.coordinates(23), Ok(vec![1, 2, 3]));
        assert_eq!(grid.coordinates(24), Err(ERR_RANK));
        assert_eq!(grid.rank(&[1, -1, 0]), grid.rank(&[1, 2, 0]));
        assert_eq!(grid.rank(&[0, 7, 0]), grid.rank(&[0, 1, 0]));
        assert_eq!(grid.rank(&[2, 0, 0]), Err(ERR_ARG));
    }

    #[test]
    fn shifts_end_at_the_border_or_wrap() {
        let grid = grid();
        let rank = grid.rank(&[0, 0, 3]).unwrap();
        assert_eq!(grid.shift(rank, 2, 1), Ok((rank - 1, PROC_NULL)));
        assert_eq!(grid.shift(rank, 0, 1), Ok((PROC_NULL, rank + 12)));
        assert_eq!(grid.shift(rank, 1, 1), Ok((rank + 8, rank + 4)));
        assert_eq!(grid.shift(rank, 1, -4), Ok((rank + 4, rank + 8)));
        assert_eq!(grid.shift(rank, 3, 1), Err(ERR_DIMS));
        assert_eq!(grid.shift(rank, 2, 0), Ok((rank, rank)));
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
        assert_eq!(grid().sub(&[false; 3]).size(), 1);
    }
}
