//! The ranks of a state; those that have not changed are shared with the state before.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::rank::Rank;

/// All ranks of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ranks(Vec<Arc<Rank>>);

impl Ranks {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rank> {
        self.0.iter().map(|rank| &**rank)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Rank> {
        self.0.iter_mut().map(Arc::make_mut)
    }
}

impl FromIterator<Rank> for Ranks {
    fn from_iter<I: IntoIterator<Item = Rank>>(ranks: I) -> Self {
        Ranks(ranks.into_iter().map(Arc::new).collect())
    }
}

impl Index<usize> for Ranks {
    type Output = Rank;

    fn index(&self, number: usize) -> &Rank {
        &self.0[number]
    }
}

impl IndexMut<usize> for Ranks {
    fn index_mut(&mut self, number: usize) -> &mut Rank {
        Arc::make_mut(&mut self.0[number])
    }
}
