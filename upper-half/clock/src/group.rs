//! Global group ids (section 4.1 of the paper): the same number on every rank for the same set of
//! world ranks, whatever the communicator (`MPI_SIMILAR`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use xxhash_rust::xxh3::Xxh3;

use crate::steps::{Every, Steps};

/// Global group id. Never 0, which marks an unused clock cell.
pub type Ggid = u64;

/// The id of a group: xxh3 (64 bits) of its world ranks, ascending, each as a little-endian `u32`.
///
/// `members` must be ascending and without duplicates; [`ascending`] makes it so. An
/// intercommunicator's group is the union of both its groups.
pub fn ggid(members: &[u32]) -> Ggid {
    let mut hasher = Xxh3::new();
    for rank in members {
        hasher.update(&rank.to_le_bytes());
    }
    match hasher.digest() {
        0 => 1,
        hash => hash,
    }
}

/// World ranks in the order that [`ggid`] wants.
pub fn ascending(ranks: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut members: Vec<u32> = ranks.into_iter().collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// Two different groups with one id: neither can be clocked, so the second must not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collision {
    pub ggid: Ggid,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two different groups of ranks have the same group id {:016x}",
            self.ggid
        )
    }
}

impl core::error::Error for Collision {}

/// The groups that this rank has met, by id: which clock cell is whose, and nobody else's.
#[derive(Clone, Debug, Default)]
pub struct Groups<S: Steps = Every> {
    known: BTreeMap<Ggid, Known>,
    steps: PhantomData<S>,
}

#[derive(Clone, Debug)]
struct Known {
    members: Vec<u32>,
    cell: u32,
}

/// What [`Groups::register`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    pub ggid: Ggid,
    /// Index of the group's clock cell; cells are handed out in order from 0.
    pub cell: u32,
    /// Whether the group was not known before: its cell starts at `seq` 0 and with the target that
    /// the agent may already hold for it.
    pub new: bool,
}

impl<S: Steps> Groups<S> {
    pub const fn new() -> Self {
        Groups {
            known: BTreeMap::new(),
            steps: PhantomData,
        }
    }

    /// Groups met so far: the number of clock cells in use.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Looks a group up, or gives it the next free cell. Members as for [`ggid`].
    pub fn register(&mut self, members: &[u32]) -> Result<Registered, Collision> {
        self.register_as(ggid(members), members)
    }

    /// [`Groups::register`] for an id computed by the caller, so that tests can make ids collide.
    pub fn register_as(&mut self, ggid: Ggid, members: &[u32]) -> Result<Registered, Collision> {
        let next = self.known.len() as u32;
        match self.known.get(&ggid) {
            Some(known) if known.members == members || !S::COLLISIONS => Ok(Registered {
                ggid,
                cell: known.cell,
                new: false,
            }),
            Some(_) => Err(Collision { ggid }),
            None => {
                let members = members.to_vec();
                self.known.insert(
                    ggid,
                    Known {
                        members,
                        cell: next,
                    },
                );
                Ok(Registered {
                    ggid,
                    cell: next,
                    new: true,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn similar_communicators_have_one_id() {
        assert_eq!(ggid(&ascending([3, 1, 2])), ggid(&ascending([2, 3, 1, 1])));
        assert_ne!(ggid(&[1, 2, 3]), ggid(&[1, 2, 4]));
        assert_ne!(ggid(&[0]), ggid(&[0, 1]));
    }

    #[test]
    fn the_id_is_the_same_in_every_build() {
        // An image holds ids that an earlier build computed.
        let bytes: Vec<u8> = [0u32, 1, 2, 3]
            .iter()
            .flat_map(|r| r.to_le_bytes())
            .collect();
        assert_eq!(ggid(&[0, 1, 2, 3]), xxhash_rust::xxh3::xxh3_64(&bytes));
    }

    #[test]
    fn a_collision_is_detected_and_changes_nothing() {
        let mut groups: Groups = Groups::new();
        let first = groups.register_as(7, &[0, 1]).unwrap();
        assert_eq!(groups.register_as(7, &[0, 2]), Err(Collision { ggid: 7 }));
        let again = groups.register_as(7, &[0, 1]).unwrap();
        assert_eq!((again.cell, again.new), (first.cell, false));
        assert_eq!(groups.len(), 1);
    }

    #[test]
    fn every_subset_of_sixteen_ranks_has_its_own_id() {
        let mut groups: Groups = Groups::new();
        for bits in 1u32..1 << 16 {
            let members: Vec<u32> = (0..16).filter(|r| bits & (1 << r) != 0).collect();
            assert!(groups.register(&members).unwrap().new);
        }
    }

    proptest! {
        #[test]
        fn cells_are_handed_out_in_order(sets in proptest::collection::vec(
            proptest::collection::vec(0u32..64, 1..6), 1..40))
        {
            let mut groups: Groups = Groups::new();
            let mut order: Vec<Vec<u32>> = vec![];
            for set in sets {
                let members = ascending(set);
                let got = groups.register(&members).unwrap();
                let expected = match order.iter().position(|m| *m == members) {
                    Some(index) => index,
                    None => { order.push(members); order.len() - 1 }
                };
                prop_assert_eq!(got.cell as usize, expected);
            }
        }
    }
}
