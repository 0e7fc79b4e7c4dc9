//! Sets of processes: pure functions on lists of world ranks (MPI 5.0, section 7.3.2).
//!
//! A group is the list of its members' ranks in `MPI_COMM_WORLD`, in group order, without duplicates.
//! Errors are standard-ABI error classes.

use stillpoint_wrappers::neutral::constants::{PROC_NULL, UNDEFINED};

use crate::objects::outcome::class;

/// How two groups compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Same members in the same order.
    Ident,
    /// Same members in another order.
    Similar,
    /// Different members.
    Unequal,
}

/// The rank of each world rank in a group.
struct Positions {
    lowest: i32,
    at: Vec<i32>,
}

impl Positions {
    fn of(members: &[i32]) -> Self {
        let lowest = members.iter().copied().min().unwrap_or(0);
        let highest = members.iter().copied().max().unwrap_or(-1);
        let mut at = vec![-1; usize::try_from(highest - lowest + 1).unwrap_or(0)];
        for (rank, member) in (0..).zip(members) {
            if let Some(place) = at.get_mut((member - lowest) as usize) {
                *place = rank;
            }
        }
        Self { lowest, at }
    }

    fn find(&self, member: i32) -> Option<i32> {
        let place = usize::try_from(member.checked_sub(self.lowest)?).ok()?;
        self.at.get(place).copied().filter(|rank| *rank >= 0)
    }
}

/// The rank of one member.
pub fn rank_of(members: &[i32], member: i32) -> Option<i32> {
    (0..)
        .zip(members)
        .find(|(_, m)| **m == member)
        .map(|(rank, _)| rank)
}

/// `MPI_Group_union`: the first group, then the members that only the second has.
pub fn union(one: &[i32], two: &[i32]) -> Vec<i32> {
    let known = Positions::of(one);
    let mut all = one.to_vec();
    all.extend(two.iter().filter(|m| known.find(**m).is_none()));
    all
}

/// `MPI_Group_intersection`: the members that both have, in the first group's order.
pub fn intersection(one: &[i32], two: &[i32]) -> Vec<i32> {
    let other = Positions::of(two);
    one.iter()
        .copied()
        .filter(|m| other.find(*m).is_some())
        .collect()
}

/// `MPI_Group_difference`: the members that only the first has, in its order.
pub fn difference(one: &[i32], two: &[i32]) -> Vec<i32> {
    let other = Positions::of(two);
    one.iter()
        .copied()
        .filter(|m| other.find(*m).is_none())
        .collect()
}

/// `MPI_Group_incl`: the members at `ranks`, in that order.
pub fn incl(members: &[i32], ranks: &[i32]) -> Result<Vec<i32>, i32> {
    let mut taken = vec![false; members.len()];
    let mut chosen = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let place = usize::try_from(*rank).map_err(|_| class::RANK)?;
        let member = *members.get(place).ok_or(class::RANK)?;
        if std::mem::replace(taken.get_mut(place).ok_or(class::RANK)?, true) {
            return Err(class::RANK);
        }
        chosen.push(member);
    }
    Ok(chosen)
}

/// `MPI_Group_excl`: all but the members at `ranks`.
pub fn excl(members: &[i32], ranks: &[i32]) -> Result<Vec<i32>, i32> {
    let out = incl(members, ranks)?;
    Ok(difference(members, &out))
}

/// The ranks that `(first, last, stride)` triplets name.
pub fn expand(ranges: &[[i32; 3]]) -> Result<Vec<i32>, i32> {
    let mut ranks = Vec::new();
    for [first, last, stride] in ranges {
        let (first, last, stride) = (i64::from(*first), i64::from(*last), i64::from(*stride));
        if stride == 0 || (last - first) * stride.signum() < 0 && first != last {
            return Err(class::RANK);
        }
        let mut rank = first;
        while (stride > 0 && rank <= last) || (stride < 0 && rank >= last) {
            ranks.push(rank as i32);
            rank += stride;
        }
    }
    Ok(ranks)
}

/// `MPI_Group_range_incl`.
pub fn range_incl(members: &[i32], ranges: &[[i32; 3]]) -> Result<Vec<i32>, i32> {
    incl(members, &expand(ranges)?)
}

/// `MPI_Group_range_excl`.
pub fn range_excl(members: &[i32], ranges: &[[i32; 3]]) -> Result<Vec<i32>, i32> {
    excl(members, &expand(ranges)?)
}

/// `MPI_Group_translate_ranks`: the ranks in another group of members of one ([`UNDEFINED`] if it has no such
/// member; [`PROC_NULL`] stays).
pub fn translate(one: &[i32], ranks: &[i32], two: &[i32]) -> Result<Vec<i32>, i32> {
    let other = Positions::of(two);
    ranks
        .iter()
        .map(|rank| {
            if *rank == PROC_NULL {
                return Ok(PROC_NULL);
            }
            let place = usize::try_from(*rank).map_err(|_| class::RANK)?;
            let member = *one.get(place).ok_or(class::RANK)?;
            Ok(other.find(member).unwrap_or(UNDEFINED))
        })
        .collect()
}

/// `MPI_Group_compare`.
pub fn compare(one: &[i32], two: &[i32]) -> Comparison {
    if one == two {
        return Comparison::Ident;
    }
    let other = Positions::of(two);
    if one.len() == two.len() && one.iter().all(|m| other.find(*m).is_some()) {
        Comparison::Similar
    } else {
        Comparison::Unequal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENS: &[i32] = &[0, 2, 4, 6];
    const MIXED: &[i32] = &[6, 1, 2, 9];

    #[test]
    fn set_operations_keep_the_order_that_the_standard_asks_for() {
        assert_eq!(union(EVENS, MIXED), [0, 2, 4, 6, 1, 9]);
        assert_eq!(union(MIXED, EVENS), [6, 1, 2, 9, 0, 4]);
        assert_eq!(intersection(EVENS, MIXED), [2, 6]);
        assert_eq!(intersection(MIXED, EVENS), [6, 2]);
        assert_eq!(difference(EVENS, MIXED), [0, 4]);
        assert!(difference(EVENS, EVENS).is_empty());
        assert_eq!(union(&[], MIXED), MIXED);
        assert!(intersection(&[], MIXED).is_empty());
    }

    #[test]
    fn selections_refuse_ranks_that_are_not_there_or_come_twice() {
        assert_eq!(incl(MIXED, &[3, 0]), Ok(vec![9, 6]));
        assert_eq!(incl(MIXED, &[4]), Err(class::RANK));
        assert_eq!(incl(MIXED, &[-1]), Err(class::RANK));
        assert_eq!(incl(MIXED, &[1, 1]), Err(class::RANK));
        assert_eq!(excl(MIXED, &[0, 2]), Ok(vec![1, 9]));
        assert_eq!(excl(MIXED, &[]), Ok(MIXED.to_vec()));
    }

    #[test]
    fn ranges_run_both_ways() {
        let ten: Vec<i32> = (0..10).collect();
        assert_eq!(
            range_incl(&ten, &[[1, 6, 2], [9, 7, -1]]),
            Ok(vec![1, 3, 5, 9, 8, 7])
        );
        assert_eq!(range_excl(&ten, &[[8, 0, -1]]), Ok(vec![9]));
        assert_eq!(range_incl(&ten, &[[3, 3, 5]]), Ok(vec![3]));
        assert_eq!(range_incl(&ten, &[[0, 4, 0]]), Err(class::RANK));
        assert_eq!(range_incl(&ten, &[[4, 0, 1]]), Err(class::RANK));
        assert_eq!(range_incl(&ten, &[[0, 4, 1], [4, 5, 1]]), Err(class::RANK));
        assert_eq!(range_incl(&ten, &[[0, 10, 1]]), Err(class::RANK));
    }

    #[test]
    fn translation_knows_who_is_absent() {
        assert_eq!(
            translate(EVENS, &[1, 0, 3, PROC_NULL], MIXED),
            Ok(vec![2, UNDEFINED, 0, PROC_NULL])
        );
        assert_eq!(translate(EVENS, &[4], MIXED), Err(class::RANK));
    }

    #[test]
    fn comparison_tells_order_from_membership() {
        assert_eq!(compare(EVENS, EVENS), Comparison::Ident);
        assert_eq!(compare(EVENS, &[6, 4, 2, 0]), Comparison::Similar);
        assert_eq!(compare(EVENS, MIXED), Comparison::Unequal);
        assert_eq!(compare(EVENS, &[0, 2]), Comparison::Unequal);
        assert_eq!(compare(&[], &[]), Comparison::Ident);
    }
}
