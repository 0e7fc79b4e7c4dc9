//! The number of a process in its job.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The rank of a process in its job, from 0. It is not the rank in a communicator.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank that every job has.
    pub const FIRST: Rank = Rank(0);

    /// The rank of an entry in a list with one entry for each rank.
    pub const fn at(index: usize) -> Rank {
        Rank(index as u32)
    }

    /// The index in a list with one entry for each rank.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The ranks of a job of this size.
    pub fn all(size: u32) -> impl Iterator<Item = Rank> {
        (0..size).map(Rank)
    }

    /// The entries of a list with one entry for each rank, with their ranks.
    pub fn of_each<T>(list: impl IntoIterator<Item = T>) -> impl Iterator<Item = (Rank, T)> {
        (0..).map(Rank).zip(list)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
